package service

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/db"
)

// A screener checks contacts against the do-not-call lists of an organization and its
// market.
type screener struct {
	store      *store.Store
	registries RegistryLister // nil means none
	cache      *screening.Cache
}

// A screenResult is the input and the matches of a screening.
type screenResult struct {
	digest   []byte // SHA-256 of the candidates' numbers
	matches  []screening.Match
	versions []string // versions of the registries
	rules    string   // version of the market package
	lists    screening.Lists
}

// lists returns the registries of a market, none if pkg is nil.
func (x screener) lists(ctx context.Context, q db.Querier, pkg *market.Package) (l screening.Lists, err error) {
	if pkg == nil {
		return l, nil
	}
	l = screening.Lists{Expected: pkg.Registry, StaleAfter: pkg.StaleAfter}
	if x.registries != nil {
		l.Registries, err = x.registries(ctx, q, pkg.Code)
	}
	return l, err
}

// screenDraft screens the launch import of a draft. When a campaign is only read, it returns the cached screening if
// the input has not changed since, or if how is screening.Cached.
func (x screener) screenDraft(
	ctx context.Context, q db.Querier, pkg *market.Package, st *Status, on launchcheck.Occasion, how screening.Freshness, now time.Time,
) (screenResult, error) {
	c := st.Campaign
	l, err := x.lists(ctx, q, pkg)
	if err != nil {
		return screenResult{}, err
	}
	stamp, err := x.stamp(ctx, q, st, pkg, l, now)
	if err != nil {
		return screenResult{}, err
	}
	if f, ok := x.cache.Get(c.LaunchImportID); ok && on == launchcheck.Reading && (f.Stamp == stamp || how == screening.Cached) {
		st.Screen, st.Stale = f.Screen, f.Stamp != stamp
		if !st.Stale {
			st.Screen.ScreenedAt = now.Unix()
		}
		st.Screen.AuditID, err = x.store.Imports.FirstAuditID(ctx, q, c.LaunchImportID)
		return screenResult{matches: f.Matches, versions: l.Versions(), rules: pkg.Version, lists: l}, err
	}
	screen, found, err := x.screen(ctx, q, c.OrgID, pkg, x.store.Imports.Candidates(ctx, q, c.LaunchImportID), now)
	if err != nil {
		return found, err
	}
	screen.ImportID = c.LaunchImportID
	if screen.Matched > 0 {
		screen.Decision = c.DNC
	}
	x.cache.Put(c.LaunchImportID, screening.CacheEntry{Stamp: stamp, Screen: screen, Matches: found.matches})
	screen.AuditID, err = x.store.Imports.FirstAuditID(ctx, q, c.LaunchImportID)
	st.Screen = screen
	return found, err
}

// stamp identifies the input of a draft's screening: its contacts, the organization's
// list, the registries and whether they are stale.
func (x screener) stamp(
	ctx context.Context, q db.Querier, st *Status, pkg *market.Package, l screening.Lists, now time.Time,
) (string, error) {
	own, err := x.store.SuppressionVersion(ctx, q, st.Campaign.OrgID)
	return fmt.Sprintf("%q %q %v %d %q %v %v",
		pkg.Version, l.Versions(), l.IsStale(now), own, st.Campaign.DNC, st.Counts.ByState, st.Counts.ByReason), err
}

// screen checks candidates, which come in pages, against the do-not-call lists.
func (x screener) screen(
	ctx context.Context, q db.Querier, orgID string, pkg *market.Package, pages iter.Seq2[[]screening.Candidate, error], now time.Time,
) (screening.Screen, screenResult, error) {
	r := screenResult{rules: pkg.Version}
	var err error
	if r.lists, err = x.lists(ctx, q, pkg); err != nil {
		return screening.None(), screenResult{}, err
	}
	var own map[string]bool
	r.lists.Own = func(n string) bool { return own[n] }
	r.versions = r.lists.Versions()
	s := screening.Screening{Lists: r.lists}
	for page, err := range pages {
		numbers := make([]string, len(page))
		for i, c := range page {
			numbers[i] = c.Number
		}
		if err == nil {
			own, err = x.store.Suppressed(ctx, q, orgID, numbers)
		}
		if err != nil {
			return screening.None(), screenResult{}, err
		}
		s.Add(page)
	}
	screen, matches := s.Result(now)
	r.matches, r.digest = matches, s.Digest()
	return screen, r, nil
}

// freeze stores the screening of a launch and suppresses the contacts that matched.
func (x screener) freeze(ctx context.Context, tx pgx.Tx, st *Status, found screenResult, now time.Time) error {
	var listed []string
	for _, m := range found.matches {
		listed = append(listed, m.Phone)
	}
	n, err := x.store.Contacts.SuppressListed(ctx, tx, st.Campaign.ID, listed, now)
	if err != nil {
		return err
	}
	st.Screen.Suppressed, st.Screen.AsOfLaunch = n, true
	st.Screen.Decision = screening.Clean
	if st.Screen.Matched > 0 {
		st.Screen.Decision = st.Campaign.DNC
	}
	if st.Import != nil {
		if st.Screen.AuditID, err = x.store.Imports.SaveAudit(ctx, tx, st.Campaign, st.Screen, found.versions, found.rules); err != nil {
			return err
		}
		st.Import.Screen = st.Screen
		if err = x.store.Imports.SaveMatches(ctx, tx, st.Import.ID, found.matches); err != nil {
			return err
		}
	}
	return x.store.SaveLaunchScreen(ctx, tx, st.Campaign.ID, st.Screen)
}
