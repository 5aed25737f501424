package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/report"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
)

// Report writes the result of every row of an import or, with matchesOnly, of the rows
// on a do-not-call list. It calls begin after all checks that can refuse the report.
func (svc *Service) Report(ctx context.Context, orgID, id string, matchesOnly bool, begin func() (report.Table, error)) error {
	return svc.snapshot(ctx, func(tx pgx.Tx) error {
		i, err := svc.Store.Imports.Get(ctx, tx, orgID, id)
		if err != nil {
			return err
		}
		if matchesOnly && i.SourceKey == "" {
			return control.Refuse(control.CodeDNCScreenRequired, "the rows of the list are not stored: upload it again")
		}
		matches, err := svc.matches(ctx, tx, orgID, i.CampaignID, id)
		if err != nil {
			return err
		}
		names, err := svc.Store.Imports.VariableNames(ctx, tx, id, report.MaxVariables)
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
		err = svc.Store.Imports.EachRow(ctx, tx, id, func(l store.ReportRow) error {
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

// matches returns the do-not-call list of each matching row: as stored or, for a draft,
// by a new screening.
func (svc *Service) matches(ctx context.Context, tx pgx.Tx, orgID, campaignID, id string) (map[int]string, error) {
	c, err := svc.Store.Get(ctx, tx, orgID, campaignID, false)
	if err != nil {
		return nil, err
	}
	_, pkg, err := svc.rules(ctx, tx, orgID)
	if err != nil {
		return nil, err
	}
	if c.LaunchImportID != id || !c.LaunchedAt.IsZero() || pkg == nil {
		return svc.Store.Imports.Matches(ctx, tx, id)
	}
	_, s, err := svc.screener().screen(ctx, tx, orgID, pkg, svc.Store.Imports.Candidates(ctx, tx, id), svc.now())
	found := map[int]string{}
	for _, m := range s.matches {
		found[m.Row] = m.Registry
	}
	return found, err
}
