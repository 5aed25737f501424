package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// Get returns a campaign as it stands, with the launch checks as they are now.
func (d *Desk) Get(ctx context.Context, orgID, id string, how screen.Age) (Standing, error) {
	var st Standing
	err := d.snapshot(ctx, func(tx pgx.Tx) error {
		c, err := d.Store.Get(ctx, tx, orgID, id, false)
		if err != nil {
			return err
		}
		st, _, err = d.stand(ctx, tx, c, checks.Reading, asked{how: how}, d.now())
		return err
	})
	if err != nil {
		return st, err
	}
	return st, d.seen(ctx, st)
}

// seen keeps which screen of a draft a client is shown: what it attests is that.
func (d *Desk) seen(ctx context.Context, st Standing) error {
	c := st.Campaign
	if c.Status != campaigns.Draft || st.Old || st.Screen.Fingerprint == "" || st.Screen.Fingerprint == c.SeenFingerprint {
		return nil
	}
	return d.Store.Seen(ctx, d.Pool, c.ID, st.Screen.Fingerprint)
}

// snapshot reads in one transaction that sees one instant.
func (d *Desk) snapshot(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, d.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

// A LaunchOrder asks for a launch.
type LaunchOrder struct {
	Confirmed bool
	ImportID  string // the attestation's; empty where none was named
	DNC       string // a decision, empty for that of the creation
}

// Launch launches a draft. A *BlockedError tells what keeps it from that.
func (d *Desk) Launch(ctx context.Context, orgID, id string, who Who, o LaunchOrder) (Standing, error) {
	var st Standing
	err := d.change(ctx, orgID, id, campaigns.Launch, func(tx pgx.Tx, c campaigns.Campaign, m campaigns.Move) error {
		if err := o.check(c); err != nil {
			return err
		}
		if m == campaigns.Impossible {
			return impossible(c, "launched")
		}
		now := d.now().UTC()
		var err error
		if m == campaigns.Already {
			st, _, err = d.stand(ctx, tx, c, checks.Reading, asked{}, now)
			return err
		}
		if err = d.decide(ctx, tx, &c, o); err != nil {
			return err
		}
		a := asked{given: o.Confirmed, seen: c.SeenFingerprint}
		if a.stale, err = d.another(ctx, tx, c, o.ImportID); err != nil {
			return err
		}
		st, err = d.begin(ctx, tx, c, who, a, now)
		if err == nil && len(st.Blockers) > 0 {
			return &BlockedError{st.Blockers}
		}
		return err
	})
	return st, err
}

// check is what is told of a launch before its campaign's status counts.
func (o LaunchOrder) check(c campaigns.Campaign) error {
	if o.ImportID == "" && c.LaunchImportID != "" {
		return control.Refuse(control.CodeAttestationImport, "attestation.import_id names the list that is attested")
	}
	return campaigns.CheckDNC(o.DNC)
}

// another tells whether an import that was named is not what a launch of a
// campaign is about: its launch import, or where it has none any batch of it.
func (d *Desk) another(ctx context.Context, q db.Querier, c campaigns.Campaign, id string) (bool, error) {
	if c.LaunchImportID != "" || id == "" {
		return id != c.LaunchImportID, nil
	}
	i, err := d.Store.Import(ctx, q, c.OrgID, id)
	if control.CodeOf(err) == control.CodeImportNotFound {
		return true, nil
	}
	return i.CampaignID != c.ID || !i.Accepted, err
}

// decide takes the decision about listed numbers that comes with a launch.
func (d *Desk) decide(ctx context.Context, q db.Querier, c *campaigns.Campaign, o LaunchOrder) error {
	if o.DNC == "" {
		return nil
	}
	if c.LaunchImportID == "" {
		return control.Refuse(control.CodeDNCWithoutUpload, "the campaign has no list to decide about")
	}
	i, err := d.Store.Import(ctx, q, c.OrgID, c.LaunchImportID)
	if err != nil {
		return err
	}
	if i.SourceKey == "" {
		return control.Refuse(control.CodeDNCScreenRequired, "the rows of the list were not kept: upload it again")
	}
	c.DNC = o.DNC
	return nil
}

// Pause stops dialling; calls that are on go on.
func (d *Desk) Pause(ctx context.Context, orgID, id string, who Who) (Standing, error) {
	return d.move(ctx, orgID, id, campaigns.Pause, who, store.WasPaused, func(c *campaigns.Campaign) { c.Status = campaigns.Paused })
}

// Cancel ends a campaign for good; calls that are on go on.
func (d *Desk) Cancel(ctx context.Context, orgID, id string, who Who) (Standing, error) {
	return d.move(ctx, orgID, id, campaigns.Cancel, who, store.WasCanceled, func(c *campaigns.Campaign) {
		c.Status, c.StatusReason, c.CancelledAt = campaigns.Cancelled, campaigns.ByClient, d.now().UTC()
	})
}

// Resume goes on dialling if nothing keeps the campaign from that; a
// *BlockedError tells what does.
func (d *Desk) Resume(ctx context.Context, orgID, id string, who Who) (Standing, error) {
	var st Standing
	err := d.change(ctx, orgID, id, campaigns.Resume, func(tx pgx.Tx, c campaigns.Campaign, m campaigns.Move) error {
		if m == campaigns.Impossible {
			return impossible(c, "resumed")
		}
		now := d.now().UTC()
		var err error
		if st, _, err = d.stand(ctx, tx, c, checks.Resuming, asked{}, now); err != nil || m == campaigns.Already {
			return err
		}
		if len(st.Blockers) > 0 {
			return &BlockedError{st.Blockers}
		}
		c.Status, c.UpdatedAt = campaigns.Running, now
		st.Campaign = c
		if err = d.Store.Move(ctx, tx, c); err != nil {
			return err
		}
		return d.Store.Log(ctx, tx, c, who.entry(store.WasResumed, "", now))
	})
	return st, err
}

// move does an action that needs no checks. The word is its participle, and how
// the log calls it.
func (d *Desk) move(ctx context.Context, orgID, id string, a campaigns.Action, who Who, word string, do func(*campaigns.Campaign)) (Standing, error) {
	var st Standing
	err := d.change(ctx, orgID, id, a, func(tx pgx.Tx, c campaigns.Campaign, m campaigns.Move) error {
		if m == campaigns.Impossible {
			return impossible(c, word)
		}
		if m == campaigns.Happens {
			do(&c)
			c.UpdatedAt = d.now().UTC()
			err := d.Store.Move(ctx, tx, c)
			if err == nil {
				err = d.Store.Log(ctx, tx, c, who.entry(word, "", c.UpdatedAt))
			}
			if err != nil {
				return err
			}
		}
		var err error
		st, _, err = d.stand(ctx, tx, c, checks.Reading, asked{}, d.now())
		return err
	})
	return st, err
}

// change does something to a campaign that nobody else changes meanwhile, as it
// is by now.
func (d *Desk) change(ctx context.Context, orgID, id string, a campaigns.Action, do func(pgx.Tx, campaigns.Campaign, campaigns.Move) error) error {
	return db.Tx(ctx, d.Pool, func(tx pgx.Tx) error {
		c, err := d.locked(ctx, tx, orgID, id)
		if err != nil {
			return err
		}
		return do(tx, c, campaigns.Allowed(c.Status, a))
	})
}

// locked returns a campaign that nobody else changes until the transaction is
// over, moved to where time has brought it.
func (d *Desk) locked(ctx context.Context, tx pgx.Tx, orgID, id string) (campaigns.Campaign, error) {
	c, err := d.Store.Get(ctx, tx, orgID, id, true)
	if err != nil {
		return c, err
	}
	now, err := d.clock(ctx, tx)
	if err == nil {
		err = d.arrive(ctx, tx, &c, now)
	}
	return c, err
}

func impossible(c campaigns.Campaign, participle string) error {
	return control.Refuse(control.CodeCampaignTransition, fmt.Sprintf("a campaign that is %s cannot be %s", c.Status, participle))
}

// Import returns a list that was handed over, and its screen: live until its
// campaign is launched, frozen after.
func (d *Desk) Import(ctx context.Context, orgID, id string, how screen.Age) (Imported, error) {
	var x Imported
	var shown Standing
	err := d.snapshot(ctx, func(tx pgx.Tx) error {
		i, err := d.Store.Import(ctx, tx, orgID, id)
		if err != nil {
			return err
		}
		c, err := d.Store.Get(ctx, tx, orgID, i.CampaignID, false)
		if err != nil {
			return err
		}
		if c.LaunchImportID == id {
			st, _, fault := d.stand(ctx, tx, c, checks.Reading, asked{how: how}, d.now())
			if fault == nil && st.Import == nil {
				fault = errors.New("the launch import is gone")
			}
			if fault == nil {
				x, shown = *st.Import, st
			}
			return fault
		}
		x = Imported{Import: i, Screen: screen.None()}
		if i.Screen != nil {
			x.Screen, x.Matches = *i.Screen, i.Screen.Items
		}
		x.Issues, x.ByCode, x.Total, err = d.Store.Issues(ctx, tx, id, screen.Shown)
		return err
	})
	if err != nil {
		return x, err
	}
	return x, d.seen(ctx, shown)
}
