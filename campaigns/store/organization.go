package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/phonenumber"
)

// An Organization has the settings that campaigns use.
type Organization struct {
	ID, Name, Zone string
	Window         market.Week // calling window of the organization
	Market         string      // code of the market package; empty for none
	Rules          string      // installed version of the package; empty for the built-in one
	Caps           Caps
	// RequireRegistry reports that contacts whose number no registry covers are not called.
	RequireRegistry bool
}

// Caps are an organization's own frequency caps. nil means that those of the market apply.
type Caps struct {
	Enabled   *bool `json:"enabled"`
	Daily     *int  `json:"daily"`
	Rolling7d *int  `json:"rolling_7d"`
}

// defaultWindow is the window of an organization without one.
func defaultWindow() market.Week {
	var w market.Week
	for i := range w {
		w[i] = market.Hours{From: 9 * 60, To: 21 * 60}
	}
	return w
}

// Organization returns an organization.
func (s *Store) Organization(ctx context.Context, q db.Querier, id string) (Organization, error) {
	all, err := s.Organizations(ctx, q, []string{id})
	if o, ok := all[id]; ok || err != nil {
		return o, err
	}
	return Organization{}, fmt.Errorf("organization: %w", pgx.ErrNoRows)
}

// Organizations returns organizations by id. If it returns organizations and an error, the organizations are valid, and
// the error is about others.
func (s *Store) Organizations(ctx context.Context, q db.Querier, ids []string) (map[string]Organization, error) {
	all := map[string]Organization{}
	var faults []error
	var o Organization
	var text []byte
	err := db.Each(ctx, q, "organization", []any{&o.ID, &o.Name, &o.Zone, &text}, func() error {
		if one, fault := withSettings(o, text); fault != nil {
			faults = append(faults, fmt.Errorf("%s: %w", o.ID, fault))
		} else {
			all[o.ID] = one
		}
		return nil
	}, "SELECT id, name, timezone, settings FROM organizations WHERE id = ANY ($1)", ids)
	if err != nil {
		return nil, err
	}
	return all, errors.Join(faults...)
}

// withSettings returns an organization with the settings in text.
func withSettings(o Organization, text []byte) (Organization, error) {
	o.Window = defaultWindow()
	var settings struct {
		Market *string `json:"market"`
		Rules  struct {
			Code    string `json:"code"`
			Version string `json:"version"`
		} `json:"market_rules"`
		Window *struct {
			Days  []int  `json:"days"`
			Start string `json:"start"`
			End   string `json:"end"`
		} `json:"calling_window"`
		Caps            *Caps `json:"frequency_caps"`
		RequireRegistry *bool `json:"require_registry"`
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		return Organization{}, fmt.Errorf("organization: settings: %w", err)
	}
	if settings.Market != nil {
		o.Market = *settings.Market
	}
	if settings.Rules.Code == o.Market { // otherwise the market was changed since
		o.Rules = settings.Rules.Version
	}
	if settings.Caps != nil {
		o.Caps = *settings.Caps
	}
	o.RequireRegistry = settings.RequireRegistry != nil && *settings.RequireRegistry
	if w := settings.Window; w != nil {
		begin, err1 := market.ParseClock(w.Start)
		end, err2 := market.ParseClock(w.End)
		if err := errors.Join(err1, err2); err != nil {
			return Organization{}, fmt.Errorf("organization: calling_window: %w", err)
		}
		for d := range o.Window {
			o.Window[d] = market.Hours{}
			if slices.Contains(w.Days, d) {
				o.Window[d] = market.Hours{From: begin, To: end}
			}
		}
	}
	return o, nil
}

// UsesMarketOf reports whether the organization still uses the market of a campaign. The rules of that market were
// used to read the campaign's numbers and to set its hours. A campaign without a market has no contacts and matches
// any market.
func (o Organization) UsesMarketOf(c campaigns.Campaign) bool {
	return c.Market == "" || c.Market == o.Market
}

// Plan returns the data for planning the calls of a campaign.
func (o Organization) Plan(c campaigns.Campaign, pkg *market.Package) (plan.Campaign, error) {
	p := plan.Campaign{
		ID: c.ID, Running: c.Status == campaigns.Running, Ends: c.EndsAt, Class: c.Classification, Market: pkg,
		Override:    plan.Override{Enabled: o.Caps.Enabled, Daily: o.Caps.Daily, Rolling7d: o.Caps.Rolling7d},
		ContactZone: c.ContactTimezone, Window: o.Window,
	}
	var err error
	if p.Zone, err = time.LoadLocation(c.Timezone); err != nil {
		return p, fmt.Errorf("campaign time zone: %w", err)
	}
	if p.WindowZone, err = time.LoadLocation(o.Zone); err != nil {
		return p, fmt.Errorf("organization time zone: %w", err)
	}
	for day := range p.Hours {
		p.Hours[day] = c.HoursOn(day)
	}
	return p, nil
}

// Calendar returns the calendar of a campaign; nil if pkg is nil or the organization uses another market.
func (o Organization) Calendar(c campaigns.Campaign, pkg *market.Package) (*plan.Calendar, error) {
	if pkg == nil || !o.UsesMarketOf(c) {
		return nil, nil //nolint:nilnil // no rules
	}
	planned, err := o.Plan(c, pkg)
	if err != nil {
		return nil, err
	}
	return plan.NewCalendar(planned, &plan.LawCache{}), nil
}

// Agent returns the id of an agent by name, empty if unknown, and its published
// version, 0 if none.
func (s *Store) Agent(ctx context.Context, q db.Querier, orgID, name string) (id string, version int, err error) {
	err = q.QueryRow(ctx, "SELECT id, coalesce(published_version, 0) FROM agents WHERE org_id = $1 AND name = $2", orgID, name).
		Scan(&id, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("agent: %w", err)
	}
	return id, version, nil
}

// Suppressed returns which numbers (E.164) are on the organization's list, in any form.
func (s *Store) Suppressed(ctx context.Context, q db.Querier, orgID string, numbers []string) (map[string]bool, error) {
	if len(numbers) >= bulkNumbers {
		if all, ok, err := s.suppressedInList(ctx, q, orgID, numbers); ok || err != nil {
			return all, err
		}
	}
	var plain, forms []string // pairs of a number and one of its forms
	for _, n := range numbers {
		for _, same := range phonenumber.ListedForms(control.Digits(n)) {
			plain, forms = append(plain, n), append(forms, same)
		}
	}
	return collectSet(ctx, q, "suppression list", `
		SELECT x.n FROM unnest($2::text[], $3::text[]) AS x (n, number)
		WHERE EXISTS (SELECT FROM suppressions s WHERE s.org_id = $1 AND s.number = x.number)`, orgID, plain, forms)
}

// collectSet returns the set of strings that a query selects.
func collectSet(ctx context.Context, q db.Querier, what, sql string, args ...any) (map[string]bool, error) {
	all := map[string]bool{}
	var s string
	return all, db.Each(ctx, q, what, []any{&s}, func() error {
		all[s] = true
		return nil
	}, sql, args...)
}

// For bulkNumbers or more numbers, Suppressed reads the organization's whole list if that has at most maxListed
// entries.
const (
	bulkNumbers = 1_000
	maxListed   = 50_000
)

// suppressedInList matches numbers against the whole list of an organization, if it is
// short, so that the database need not look up every form of every number.
func (s *Store) suppressedInList(
	ctx context.Context, q db.Querier, orgID string, numbers []string,
) (all map[string]bool, ok bool, err error) {
	const list = "SELECT number FROM suppressions WHERE org_id = $1 LIMIT $2"
	own, err := db.Collect(ctx, q, "suppression list", pgx.RowTo[string], list, orgID, maxListed+1)
	if err != nil || len(own) > maxListed {
		return nil, false, err
	}
	listed := make(map[string]bool, 2*len(own))
	for _, o := range own {
		for _, same := range phonenumber.ListedPlainForms(o) {
			listed[same] = true
		}
	}
	all = map[string]bool{}
	for _, n := range numbers {
		if listed[control.Digits(n)] {
			all[n] = true
		}
	}
	return all, true, nil
}

// SuppressionVersion returns a version that changes whenever the suppression list of an organization changes.
func (s *Store) SuppressionVersion(ctx context.Context, q db.Querier, orgID string) (stamp int64, err error) {
	err = q.QueryRow(ctx, "SELECT coalesce(sum(n), 0)::bigint FROM suppression_changes WHERE org_id = $1", orgID).Scan(&stamp)
	if err != nil {
		return 0, fmt.Errorf("suppression list: %w", err)
	}
	return stamp, nil
}
