package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/pricing"
)

// Get returns the status of a campaign with the current launch checks.
func (svc *Service) Get(ctx context.Context, orgID, id string, how screening.Freshness) (Status, error) {
	var st Status
	err := svc.snapshot(ctx, func(tx pgx.Tx) error {
		c, err := svc.Store.Get(ctx, tx, orgID, id, false)
		if err != nil {
			return err
		}
		st, _, err = svc.status(ctx, tx, c, launchcheck.Reading, checkInput{fresh: how}, svc.now())
		return err
	})
	if err != nil {
		return st, err
	}
	return st, svc.saveSeen(ctx, st)
}

// saveSeen stores which screening of a draft the client saw, because the client's attestation refers to it.
func (svc *Service) saveSeen(ctx context.Context, st Status) error {
	c := st.Campaign
	unscreened := st.Screen.Fingerprint == "" && c.SeenFingerprint != store.SettingsEdited
	if c.Status != campaigns.Draft || st.Stale || unscreened || st.Screen.Fingerprint == c.SeenFingerprint {
		return nil
	}
	return svc.Store.SaveSeenScreen(ctx, svc.Pool, c.ID, st.Screen.Fingerprint)
}

// snapshot runs do in a read-only transaction with one snapshot of the database.
func (svc *Service) snapshot(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, svc.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}

// A LaunchRequest asks to launch a campaign.
type LaunchRequest struct {
	Confirmed bool
	ImportID  string // import whose consent is attested; empty if the request names none
	DNC       string // Block or Skip; empty keeps the decision made at creation
	// Same refuses the launch of a version that is not the current one; may be nil.
	Same func(current campaigns.Campaign) error
}

// Launch launches a draft. It returns a *BlockedError if a check blocks it.
func (svc *Service) Launch(ctx context.Context, orgID, id string, who Actor, o LaunchRequest) (Status, error) {
	var st Status
	err := svc.change(ctx, orgID, id, campaigns.Launch, func(tx pgx.Tx, c campaigns.Campaign, m campaigns.Effect) error {
		if err := o.check(c); err != nil {
			return err
		}
		if m == campaigns.Impossible {
			return errTransition(c, "launched")
		}
		now := svc.now().UTC()
		var err error
		if m == campaigns.NoChange {
			st, _, err = svc.status(ctx, tx, c, launchcheck.Reading, checkInput{}, now)
			return err
		}
		if o.Same != nil {
			if err = o.Same(c); err != nil {
				return err
			}
		}
		if err = o.applyDNC(ctx, tx, svc.Store, &c); err != nil {
			return err
		}
		in := checkInput{attested: o.Confirmed, seen: c.SeenFingerprint}
		if in.stale, err = o.isOtherImport(ctx, tx, svc.Store, c); err != nil {
			return err
		}
		st, err = svc.launch(ctx, tx, c, who, in, now)
		if err == nil && len(st.Blockers) > 0 {
			return &BlockedError{st.Blockers}
		}
		return err
	})
	return st, err
}

// check validates the request before the status of the campaign is considered.
func (o LaunchRequest) check(c campaigns.Campaign) error {
	if o.ImportID == "" && c.LaunchImportID != "" {
		return control.Refuse(control.CodeAttestationImport, "attestation.import_id is required: the id of the attested import")
	}
	return campaigns.CheckDNC(o.DNC)
}

// isOtherImport reports whether ImportID is not the launch import of the campaign. For a campaign without a launch
// import, it reports whether ImportID is none of the accepted batches.
func (o LaunchRequest) isOtherImport(ctx context.Context, q db.Querier, from *store.Store, c campaigns.Campaign) (bool, error) {
	id := o.ImportID
	if c.LaunchImportID != "" || id == "" {
		return id != c.LaunchImportID, nil
	}
	i, err := from.Imports.Get(ctx, q, c.OrgID, id)
	if control.CodeOf(err) == control.CodeImportNotFound {
		return true, nil
	}
	return i.CampaignID != c.ID || !i.Accepted, err
}

// applyDNC sets the decision about listed numbers if the request has one.
func (o LaunchRequest) applyDNC(ctx context.Context, q db.Querier, from *store.Store, c *campaigns.Campaign) error {
	if o.DNC == "" {
		return nil
	}
	if c.LaunchImportID == "" {
		return control.Refuse(control.CodeDNCWithoutUpload, "dnc is not accepted: the campaign has no list")
	}
	i, err := from.Imports.Get(ctx, q, c.OrgID, c.LaunchImportID)
	if err != nil {
		return err
	}
	if i.SourceKey == "" {
		return control.Refuse(control.CodeDNCScreenRequired, "the rows of the list are not stored: upload it again")
	}
	c.DNC = o.DNC
	return nil
}

// Pause stops dialing. Active calls continue.
func (svc *Service) Pause(ctx context.Context, orgID, id string, who Actor) (Status, error) {
	return svc.applyAction(ctx, orgID, id, campaigns.Pause, who, store.WasPaused, func(c *campaigns.Campaign) { c.Status = campaigns.Paused })
}

// Cancel ends a campaign permanently. Active calls continue.
func (svc *Service) Cancel(ctx context.Context, orgID, id string, who Actor) (Status, error) {
	return svc.applyAction(ctx, orgID, id, campaigns.Cancel, who, store.WasCanceled, func(c *campaigns.Campaign) {
		c.Status, c.StatusReason, c.CanceledAt = campaigns.Canceled, campaigns.CanceledByClient, svc.now().UTC()
	})
}

// Resume continues dialing. It returns a *BlockedError if a check blocks it.
func (svc *Service) Resume(ctx context.Context, orgID, id string, who Actor) (Status, error) {
	var st Status
	err := svc.change(ctx, orgID, id, campaigns.Resume, func(tx pgx.Tx, c campaigns.Campaign, m campaigns.Effect) error {
		if m == campaigns.Impossible {
			return errTransition(c, "resumed")
		}
		now := svc.now().UTC()
		var err error
		if st, _, err = svc.status(ctx, tx, c, launchcheck.Resuming, checkInput{}, now); err != nil || m == campaigns.NoChange {
			return err
		}
		if len(st.Blockers) > 0 {
			return &BlockedError{st.Blockers}
		}
		c.Status, c.UpdatedAt = campaigns.Running, now
		st.Campaign = c
		if err = svc.Store.SaveStatus(ctx, tx, c); err != nil {
			return err
		}
		return svc.Store.AddLog(ctx, tx, c, who.entry(store.WasResumed, "", now))
	})
	return st, err
}

// SetBudget sets the budget of a campaign that is not over; nil removes it. Calls in progress continue.
func (svc *Service) SetBudget(ctx context.Context, orgID, id string, who Actor, units *float64) (Status, error) {
	var budget pricing.Amount
	if units != nil {
		if err := campaigns.CheckBudget(*units); err != nil {
			return Status{}, err
		}
		budget = pricing.Round(*units)
	}
	var st Status
	err := db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
		c, err := svc.lockCampaign(ctx, tx, orgID, id)
		if err != nil {
			return err
		}
		if c.Status.IsOver() {
			return errTransition(c, "given a budget")
		}
		if c.Budget != budget {
			c.Budget, c.UpdatedAt = budget, svc.now().UTC()
			err = svc.Store.SaveBudget(ctx, tx, c)
			if err == nil {
				err = svc.Store.AddLog(ctx, tx, c, who.entry(store.BudgetSet, budget.String(), c.UpdatedAt))
			}
			if err != nil {
				return err
			}
		}
		st, _, err = svc.status(ctx, tx, c, launchcheck.Reading, checkInput{}, svc.now())
		return err
	})
	return st, err
}

// applyAction performs an action without launch checks. participle names the action in errors and in the log.
func (svc *Service) applyAction(
	ctx context.Context, orgID, id string, a campaigns.Action, who Actor, participle string, do func(*campaigns.Campaign),
) (Status, error) {
	var st Status
	err := svc.change(ctx, orgID, id, a, func(tx pgx.Tx, c campaigns.Campaign, m campaigns.Effect) error {
		if m == campaigns.Impossible {
			return errTransition(c, participle)
		}
		if m == campaigns.Applies {
			do(&c)
			c.UpdatedAt = svc.now().UTC()
			err := svc.Store.SaveStatus(ctx, tx, c)
			if err == nil {
				err = svc.Store.AddLog(ctx, tx, c, who.entry(participle, "", c.UpdatedAt))
			}
			if err != nil {
				return err
			}
		}
		var err error
		st, _, err = svc.status(ctx, tx, c, launchcheck.Reading, checkInput{}, svc.now())
		return err
	})
	return st, err
}

// change locks a campaign, starts or ends it if its time has come, and calls do with the effect of the action.
func (svc *Service) change(
	ctx context.Context, orgID, id string, a campaigns.Action, do func(pgx.Tx, campaigns.Campaign, campaigns.Effect) error,
) error {
	return db.Tx(ctx, svc.Pool, func(tx pgx.Tx) error {
		c, err := svc.lockCampaign(ctx, tx, orgID, id)
		if err != nil {
			return err
		}
		return do(tx, c, campaigns.EffectOf(c.Status, a))
	})
}

// lockCampaign locks a campaign until the transaction ends, and starts or ends it if its time has come.
func (svc *Service) lockCampaign(ctx context.Context, tx pgx.Tx, orgID, id string) (campaigns.Campaign, error) {
	c, err := svc.Store.Get(ctx, tx, orgID, id, true)
	if err != nil {
		return c, err
	}
	now, err := svc.clock(ctx, tx)
	if err == nil {
		err = lifecycle{svc.Store}.applyTime(ctx, tx, &c, now)
	}
	return c, err
}

func errTransition(c campaigns.Campaign, participle string) error {
	return control.Refuse(control.CodeCampaignTransition, fmt.Sprintf("a %s campaign cannot be %s", c.Status, participle))
}

// Import returns an import and its screening. Until the launch of the campaign the screening is current; afterwards
// it is that of the launch.
func (svc *Service) Import(ctx context.Context, orgID, id string, how screening.Freshness) (ImportStatus, error) {
	var x ImportStatus
	var shown Status
	err := svc.snapshot(ctx, func(tx pgx.Tx) error {
		i, err := svc.Store.Imports.Get(ctx, tx, orgID, id)
		if err != nil {
			return err
		}
		c, err := svc.Store.Get(ctx, tx, orgID, i.CampaignID, false)
		if err != nil {
			return err
		}
		if c.LaunchImportID == id {
			st, _, fault := svc.status(ctx, tx, c, launchcheck.Reading, checkInput{fresh: how}, svc.now())
			if fault == nil && st.Import == nil {
				fault = errors.New("the launch import does not exist")
			}
			if fault == nil {
				x, shown = *st.Import, st
			}
			return fault
		}
		x = ImportStatus{Import: i, Screen: screening.None()}
		if i.Screen != nil {
			x.Screen, x.Matches = *i.Screen, i.Screen.Items
		}
		x.Issues, x.ByCode, x.Total, err = svc.Store.Imports.Issues(ctx, tx, id, screening.MaxItems)
		return err
	})
	if err != nil {
		return x, err
	}
	return x, svc.saveSeen(ctx, shown)
}
