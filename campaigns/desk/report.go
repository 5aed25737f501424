package desk

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/report"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// Report writes what became of the rows of an import, or of those alone that are
// on a do-not-call list. Begin is called once nothing refuses it any more.
func (d *Desk) Report(ctx context.Context, orgID, id string, matchesOnly bool, begin func() (report.Table, error)) error {
	return d.snapshot(ctx, func(tx pgx.Tx) error {
		i, err := d.Store.Import(ctx, tx, orgID, id)
		if err != nil {
			return err
		}
		if matchesOnly && i.SourceKey == "" {
			return control.Refuse(control.CodeDNCScreenRequired, "the rows of the list were not kept: upload it again")
		}
		matches, err := d.matches(ctx, tx, orgID, i.CampaignID, id)
		if err != nil {
			return err
		}
		names, err := d.Store.Names(ctx, tx, id, report.MostVariables)
		if err != nil {
			return err
		}
		table, err := begin()
		if err != nil {
			return err
		}
		if err = table.Write(report.Header(names)); err != nil {
			return err
		}
		err = d.Store.Lines(ctx, tx, id, func(l store.Line) error {
			if matchesOnly && matches[l.Row] == "" {
				return nil
			}
			return table.Write(report.Cells(l, matches[l.Row], names))
		})
		if err != nil {
			return err
		}
		return table.Close()
	})
}

// matches are the do-not-call lists that rows of an import are on: as it was
// found, or for the list of a draft as it is now.
func (d *Desk) matches(ctx context.Context, tx pgx.Tx, orgID, campaignID, id string) (map[int]string, error) {
	c, err := d.Store.Get(ctx, tx, orgID, campaignID, false)
	if err != nil {
		return nil, err
	}
	_, pkg, err := d.law(ctx, tx, orgID)
	if err != nil {
		return nil, err
	}
	if c.LaunchImportID != id || !c.LaunchedAt.IsZero() || pkg == nil {
		return d.Store.Matches(ctx, tx, id)
	}
	all, err := d.Store.Candidates(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	_, s, err := d.screen(ctx, tx, orgID, pkg, all, d.now())
	found := map[int]string{}
	for _, m := range s.matches {
		found[m.Row] = m.Registry
	}
	return found, err
}
