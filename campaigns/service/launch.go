package service

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
)

// A checkInput is what a request adds to the launch checks.
type checkInput struct {
	attested bool   // the request confirms the consent
	stale    bool   // the attestation names another import
	seen     string // fingerprint of the screening result that the client saw last; empty for none
	fresh    screening.Freshness
}

// launch launches a new campaign or a draft. If a check blocks the launch, the returned status has the blockers.
func (svc *Service) launch(
	ctx context.Context, tx pgx.Tx, c campaigns.Campaign, who Actor, in checkInput, now time.Time,
) (Status, error) {
	st, found, err := svc.status(ctx, tx, c, launchcheck.Launching, in, now)
	if err != nil {
		return Status{}, err
	}
	stale := slices.ContainsFunc(st.Blockers, func(b launchcheck.Blocker) bool { return b.Code == launchcheck.AttestationStale })
	if in.attested && !stale {
		err = saveAttestation(ctx, tx, svc.Store, c, c.LaunchImportID, who, found.digest, st.Screen.Fingerprint, now)
		if err != nil {
			return Status{}, err
		}
	}
	if len(st.Blockers) > 0 {
		return st, nil
	}
	if err = svc.screener().freeze(ctx, tx, &st, found, now); err != nil {
		return Status{}, err
	}
	_, version, err := svc.Store.Agent(ctx, tx, c.OrgID, c.AgentName)
	if err != nil {
		return Status{}, err
	}
	c.Status, c.LaunchedVia, c.LaunchedAt, c.UpdatedAt, c.AgentVersion = c.LaunchStatus(now), who.Via, now, now, version
	st.Campaign = c
	return st, lifecycle{svc.Store}.record(ctx, tx, c, who.entry(store.WasLaunched, c.LaunchImportID, now))
}

// saveAttestation records the actor who confirmed the consent of the contacts of an import. contacts is the SHA-256 of
// their numbers.
func saveAttestation(
	ctx context.Context, tx pgx.Tx, to *store.Store, c campaigns.Campaign, importID string, who Actor,
	contacts []byte, fingerprint string, now time.Time,
) error {
	if contacts == nil { // the campaign has no import
		contacts = (&screening.Screening{}).Digest()
	}
	return to.SaveAttestation(ctx, tx, store.Attestation{
		ID: control.NewID("att_", now), OrgID: c.OrgID, CampaignID: c.ID, ImportID: importID, KeyID: who.KeyID, Actor: who.Actor,
		Tier: c.ConsentTier(), Classification: string(c.Classification), IP: who.IP, UserAgent: who.Agent,
		Contacts: contacts, Fingerprint: fingerprint, At: now,
	})
}

// status collects the status of a campaign, with the launch checks for an occasion.
func (svc *Service) status(
	ctx context.Context, q db.Querier, c campaigns.Campaign, on launchcheck.Occasion, in checkInput, now time.Time,
) (Status, screenResult, error) {
	st := Status{Campaign: c, Screen: screening.None()}
	org, pkg, err := svc.rules(ctx, q, c.OrgID)
	if err != nil {
		return st, screenResult{}, err
	}
	frozen, err := svc.Store.LaunchScreen(ctx, q, c.ID)
	if err != nil {
		return st, screenResult{}, err
	}
	if st.Counts, err = svc.Store.Contacts.Count(ctx, q, c.ID); err != nil {
		return st, screenResult{}, err
	}
	var found screenResult
	var openErr error // a registry that cannot be opened must not prevent reading, pausing or canceling
	switch {
	case frozen != nil:
		st.Screen = *frozen
		found.lists, openErr = svc.screener().lists(ctx, q, pkg)
	case c.LaunchImportID != "" && pkg != nil:
		if found, err = svc.screener().screenDraft(ctx, q, pkg, &st, on, in.fresh, now); err != nil {
			return st, found, err
		}
	}
	if err = svc.addImport(ctx, q, &st, found); err != nil {
		return st, found, err
	}
	f, err := checker{svc.Store, svc.CheckAgent}.facts(ctx, q, org, pkg, st, now)
	if err != nil {
		return st, found, err
	}
	if err = svc.recheckAgent(ctx, q, c, f, on); err != nil {
		return st, found, err
	}
	f.Attestation = launchcheck.Attestation{Given: in.attested, Stale: in.stale || in.seen != "" && in.seen != st.Screen.Fingerprint}
	f.Screen.Frozen = frozen != nil
	f.Screen.Stale, f.Screen.AgeDays = openErr != nil || found.lists.IsStale(now), int(found.lists.Age(now).Hours()/24)
	f.Warnings.Loaded = openErr != nil || len(found.lists.Registries) > 0
	st.Blockers, st.Warnings = launchcheck.Blockers(f, on), launchcheck.Warnings(f)
	return st, found, nil //nolint:nilerr // openErr is reported as a stale screening
}

// recheckAgent requests a test of the agent's providers if their last refusal blocks a launch, because the operator
// may have corrected the setting since. It requests no test when a campaign is only read.
func (svc *Service) recheckAgent(
	ctx context.Context, q db.Querier, c campaigns.Campaign, f launchcheck.Facts, on launchcheck.Occasion,
) error {
	if f.ProviderRefusal == "" || on == launchcheck.Reading || svc.RecheckAgent == nil {
		return nil
	}
	id, version, err := svc.Store.Agent(ctx, q, c.OrgID, c.AgentName)
	if err == nil {
		svc.RecheckAgent(ctx, id, version)
	}
	return err
}

// addImport adds the launch import to the status.
func (svc *Service) addImport(ctx context.Context, q db.Querier, st *Status, found screenResult) error {
	id := st.Campaign.LaunchImportID
	if id == "" {
		return nil
	}
	i, err := svc.Store.Imports.Get(ctx, q, st.Campaign.OrgID, id)
	if err != nil {
		return err
	}
	x := &ImportStatus{Import: i, Screen: st.Screen, Stale: st.Stale, Matches: found.matches[:min(len(found.matches), screening.MaxItems)]}
	if st.Screen.AsOfLaunch {
		x.Matches = st.Screen.Items
	}
	x.Issues, x.ByCode, x.Total, err = svc.Store.Imports.Issues(ctx, q, id, screening.MaxItems)
	st.Import = x
	return err
}
