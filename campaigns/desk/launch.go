package desk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/place"
)

// asked is what came with a request.
type asked struct {
	given, stale bool   // consent
	seen         string // the screen that the client was shown last, empty for none
	how          screen.Age
}

// begin launches a new or a draft campaign if nothing keeps it from that.
func (d *Desk) begin(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, who Who, a asked, now time.Time) (Standing, error) {
	st, s, err := d.stand(ctx, tx, c, checks.Launching, a, now)
	if err != nil {
		return Standing{}, err
	}
	stale := slices.ContainsFunc(st.Blockers, func(b checks.Blocker) bool { return b.Code == checks.AttestationStale })
	if a.given && !stale {
		if err = d.attest(ctx, tx, c, c.LaunchImportID, who, s.candidates, st.Screen.Fingerprint, now); err != nil {
			return Standing{}, err
		}
	}
	if len(st.Blockers) > 0 {
		return st, nil
	}
	if err = d.freeze(ctx, tx, &st, s, now); err != nil {
		return Standing{}, err
	}
	_, version, err := d.Store.Agent(ctx, tx, c.OrgID, c.AgentName)
	if err != nil {
		return Standing{}, err
	}
	c.Status, c.LaunchedVia, c.LaunchedAt, c.UpdatedAt, c.AgentVersion = c.Launched(now), who.Via, now, now, version
	st.Campaign = c
	return st, d.record(ctx, tx, c, who.entry(store.WasLaunched, c.LaunchImportID, now))
}

// freeze makes the screen of a launch final: who matched is not called.
func (d *Desk) freeze(ctx context.Context, tx pgx.Tx, st *Standing, s screened, now time.Time) error {
	var listed []string
	for _, m := range s.matches {
		listed = append(listed, m.Phone)
	}
	n, err := d.Store.SuppressListed(ctx, tx, st.Campaign.ID, listed, now)
	if err != nil {
		return err
	}
	st.Screen.Suppressed, st.Screen.AsOfLaunch = n, true
	st.Screen.Decision = screen.Clean
	if st.Screen.Matched > 0 {
		st.Screen.Decision = st.Campaign.DNC
	}
	if st.Import != nil {
		if st.Screen.AuditID, err = d.Store.Audit(ctx, tx, st.Campaign, st.Screen, s.copies, s.rules); err != nil {
			return err
		}
		st.Import.Screen = st.Screen
		if err = d.Store.SaveMatches(ctx, tx, st.Import.ID, s.matches); err != nil {
			return err
		}
	}
	return d.Store.Freeze(ctx, tx, st.Campaign.ID, st.Screen)
}

// attest keeps who confirmed the consent of the contacts of an import.
func (d *Desk) attest(ctx context.Context, tx pgx.Tx, c campaigns.Campaign, importID string, who Who, all []screen.Candidate, fingerprint string, now time.Time) error {
	return d.Store.Attest(ctx, tx, store.Attestation{
		ID: control.NewID("att_", now), OrgID: c.OrgID, CampaignID: c.ID, ImportID: importID, KeyID: who.KeyID, Actor: who.Actor,
		Tier: c.ConsentTier(), Classification: string(c.Classification), IP: who.IP, UserAgent: who.Agent,
		Contacts: screen.Digest(all), Fingerprint: fingerprint, At: now,
	})
}

// screened is what a screen was made of.
type screened struct {
	candidates []screen.Candidate
	matches    []screen.Match
	copies     []string // of registries
	rules      string   // version of the market package
	lists      screen.Lists
}

// stand gathers all that is said of a campaign.
func (d *Desk) stand(ctx context.Context, q db.Querier, c campaigns.Campaign, on checks.Occasion, a asked, now time.Time) (Standing, screened, error) {
	st := Standing{Campaign: c, Screen: screen.None()}
	org, pkg, err := d.law(ctx, q, c.OrgID)
	if err != nil {
		return st, screened{}, err
	}
	frozen, err := d.Store.Frozen(ctx, q, c.ID)
	if err != nil {
		return st, screened{}, err
	}
	if st.Counts, err = d.Store.Counts(ctx, q, c.ID); err != nil {
		return st, screened{}, err
	}
	var s screened
	var closed error // a registry that cannot be opened keeps nobody from looking, pausing or cancelling
	switch {
	case frozen != nil:
		st.Screen = *frozen
		s.lists, closed = d.lists(ctx, q, pkg)
	case c.LaunchImportID != "" && pkg != nil:
		if s, err = d.live(ctx, q, pkg, &st, on, a.how, now); err != nil {
			return st, s, err
		}
	}
	if err = d.imported(ctx, q, &st, s); err != nil {
		return st, s, err
	}
	f, err := d.facts(ctx, q, org, pkg, st, now)
	if err != nil {
		return st, s, err
	}
	f.Attestation = checks.Attestation{Given: a.given, Stale: a.stale || a.seen != "" && a.seen != st.Screen.Fingerprint}
	f.Screen.Frozen = frozen != nil
	f.Screen.Stale, f.Screen.AgeDays = closed != nil || s.lists.TooOld(now), int(s.lists.Age(now).Hours()/24)
	f.Warnings.Loaded = closed != nil || len(s.lists.Registries) > 0
	st.Blockers, st.Warnings = checks.Blockers(f, on), checks.Warnings(f)
	return st, s, nil //nolint:nilerr // what is closed is told as stale
}

// lists are the registries of a market, nil for none.
func (d *Desk) lists(ctx context.Context, q db.Querier, pkg *market.Package) (l screen.Lists, err error) {
	if pkg == nil {
		return l, nil
	}
	l = screen.Lists{Expected: pkg.Registry, StaleAfter: pkg.StaleAfter}
	if d.Registries != nil {
		l.Registries, err = d.Registries(ctx, q, pkg.Code)
	}
	return l, err
}

// live screens the launch import of a draft as it would be screened now. Who reads
// alone is told what was found before, where nothing has changed since or it may be old.
func (d *Desk) live(ctx context.Context, q db.Querier, pkg *market.Package, st *Standing, on checks.Occasion, how screen.Age, now time.Time) (screened, error) {
	c := st.Campaign
	l, err := d.lists(ctx, q, pkg)
	if err != nil {
		return screened{}, err
	}
	stamp, err := d.stamp(ctx, q, st, pkg, l, now)
	if err != nil {
		return screened{}, err
	}
	if f, ok := d.found.Of(c.LaunchImportID); ok && on == checks.Reading && (f.Stamp == stamp || how == screen.Kept) {
		st.Screen, st.Old = f.Screen, f.Stamp != stamp
		if !st.Old {
			st.Screen.ScreenedAt = now.Unix()
		}
		st.Screen.AuditID, err = d.Store.Audited(ctx, q, c.LaunchImportID)
		return screened{matches: f.Matches, copies: l.Copies(), rules: pkg.Version, lists: l}, err
	}
	all, err := d.Store.Candidates(ctx, q, c.LaunchImportID)
	if err != nil {
		return screened{}, err
	}
	x, s, err := d.screen(ctx, q, c.OrgID, pkg, all, now)
	if err != nil {
		return s, err
	}
	x.ImportID = c.LaunchImportID
	if x.Matched > 0 {
		x.Decision = c.DNC
	}
	d.found.Keep(c.LaunchImportID, screen.Found{Stamp: stamp, Screen: x, Matches: s.matches})
	x.AuditID, err = d.Store.Audited(ctx, q, c.LaunchImportID)
	st.Screen = x
	return s, err
}

// stamp is another as soon as what the list of a draft is screened by is another: who is
// to be called, the organization's own list, the registries, and whether they are too
// old.
func (d *Desk) stamp(ctx context.Context, q db.Querier, st *Standing, pkg *market.Package, l screen.Lists, now time.Time) (string, error) {
	own, err := d.Store.OwnStamp(ctx, q, st.Campaign.OrgID)
	return fmt.Sprintf("%q %q %v %d %q %v %v", pkg.Version, l.Copies(), l.TooOld(now), own, st.Campaign.DNC, st.Counts.ByState, st.Counts.ByReason), err
}

// screen holds candidates against the do-not-call lists.
func (d *Desk) screen(ctx context.Context, q db.Querier, orgID string, pkg *market.Package, all []screen.Candidate, now time.Time) (screen.Screen, screened, error) {
	numbers := make([]string, len(all))
	for i, x := range all {
		numbers[i] = x.Number
	}
	own, err := d.Store.Suppressed(ctx, q, orgID, numbers)
	if err != nil {
		return screen.None(), screened{}, err
	}
	s := screened{candidates: all, rules: pkg.Version}
	if s.lists, err = d.lists(ctx, q, pkg); err != nil {
		return screen.None(), screened{}, err
	}
	s.lists.Own = func(n string) bool { return own[n] }
	s.copies = s.lists.Copies()
	x, matches := screen.Run(all, s.lists, now)
	s.matches = matches
	return x, s, nil
}

// imported reads the launch import of a campaign.
func (d *Desk) imported(ctx context.Context, q db.Querier, st *Standing, s screened) error {
	id := st.Campaign.LaunchImportID
	if id == "" {
		return nil
	}
	i, err := d.Store.Import(ctx, q, st.Campaign.OrgID, id)
	if err != nil {
		return err
	}
	x := &Imported{Import: i, Screen: st.Screen, Old: st.Old, Matches: s.matches[:min(len(s.matches), screen.Shown)]}
	if st.Screen.AsOfLaunch {
		x.Matches = st.Screen.Items
	}
	x.Issues, x.ByCode, x.Total, err = d.Store.Issues(ctx, q, id, screen.Shown)
	st.Import = x
	return err
}

// facts are what the checks ask for.
func (d *Desk) facts(ctx context.Context, q db.Querier, org store.Organization, pkg *market.Package, st Standing, now time.Time) (checks.Facts, error) {
	c := st.Campaign
	zone, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return checks.Facts{}, fmt.Errorf("campaign %s: %w", c.ID, err)
	}
	counts := st.Counts
	f := checks.Facts{
		Now: now, Zone: zone, Paused: c.Status == campaigns.Paused, EverLaunched: !c.LaunchedAt.IsZero(), Open: c.Open,
		MarketInstalled: org.GoesBy(c) && (pkg != nil || c.LaunchImportID == ""), StartsAt: c.StartsAt, EndsAt: c.EndsAt,
		Contacts: checks.Contacts{
			Accepted: counts.All(), Pending: counts.ByState[campaigns.Pending], Suppressed: counts.ByState[campaigns.Suppressed],
			GeoRejected: counts.ByReason[campaigns.GeoRejected], Ambiguous: counts.Ambiguous,
			Listed: max(0, st.Screen.Matched-counts.ByReason[campaigns.DNCSuppressed]),
		},
		Screen: checks.Screen{
			HasImport: st.Import != nil, Projected: st.Import != nil && st.Import.SourceKey != "",
			Unscreened: st.Screen.Unscreened, Required: org.RequireRegistry, Matched: st.Screen.Matched, Blocks: c.DNC == campaigns.Block,
		},
	}
	if err = d.route(ctx, q, c, &f); err != nil {
		return checks.Facts{}, err
	}
	speech, err := d.Store.Speech(ctx, q, c.OrgID, c.ID, c.AgentID)
	if err != nil {
		return checks.Facts{}, err
	}
	f.Warnings.Disclosures = speech.Disclosed
	floor := org.Window
	if pkg != nil {
		floor = pkg.Floor(now, nil, c.Classification, org.Window)
		f.Warnings.OrgWindow, f.Warnings.RegistryExists = pkg.OrganizationWindow, pkg.Registry
		f.Warnings.StaleAfterDays = int(pkg.StaleAfter.Hours() / 24)
	} else {
		f.Warnings.OrgWindow = true
	}
	var opens time.Time
	opens, f.HoursOpen = c.Opens(now, floor)
	f.Warnings.WindowOpen = f.HoursOpen && !opens.After(now)
	f.Warnings.NextWindow = opens
	f.Warnings.OwnHours, f.Warnings.Pace = len(c.WorkingHours) > 0, c.CallsPerMinute
	f.Frequency = frequency(org, pkg, c)
	return f, nil
}

// route tells how it stands with the campaign's agent and its line.
func (d *Desk) route(ctx context.Context, q db.Querier, c campaigns.Campaign, f *checks.Facts) error {
	id, version, err := d.Store.Agent(ctx, q, c.OrgID, c.AgentName)
	if err != nil {
		return err
	}
	f.AgentPublished = version > 0
	if f.RouteAvailable, f.Warnings.Recording, err = d.Store.Line(ctx, q, c); err != nil || id == "" {
		return err
	}
	all, err := place.Routes(ctx, q, c.OrgID, c.AgentName)
	if err != nil {
		return err
	}
	for _, t := range all {
		i := slices.IndexFunc(t.Subgroups, func(g place.Subgroup) bool { return g.ID == c.Binding.RouteID })
		if t.ID != c.Binding.TrunkID || i < 0 {
			continue
		}
		f.AgentAttached = true
		f.CallerNumber = slices.ContainsFunc(t.Subgroups[i].CallerNumbers, func(n string) bool {
			return control.Digits(n) == control.Digits(c.Binding.FromNumber)
		})
		f.Warnings.RouteLimit = t.Subgroups[i].CallsPerMinute
	}
	return nil
}

// frequency is the caps that hold for contacts of no state in particular.
func frequency(org store.Organization, pkg *market.Package, c campaigns.Campaign) checks.Frequency {
	f := checks.Frequency{Source: market.FromMarket, Disabled: org.Caps.Enabled != nil && !*org.Caps.Enabled}
	if pkg != nil {
		for _, x := range pkg.Caps(market.Place{}, c.Classification) {
			switch x.Kind {
			case market.CapDaily:
				f.Daily = x.Most
			case market.CapRolling7d:
				f.Rolling7d = x.Most
			}
			if x.Source == market.FromLaw {
				f.Source = market.FromLaw
			}
		}
	}
	if org.Caps.Daily != nil {
		f.Daily, f.Source = *org.Caps.Daily, market.FromOrganization
	}
	if org.Caps.Rolling7d != nil {
		f.Rolling7d, f.Source = *org.Caps.Rolling7d, market.FromOrganization
	}
	return f
}
