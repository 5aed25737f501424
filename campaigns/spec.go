package campaigns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/campaigns/contactfile"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/pricing"
)

// Horizon is the default maximum time until the end of a campaign that accepts further calls.
const Horizon = 30 * 24 * time.Hour

// maxNameLength bounds a campaign's name, in characters.
const maxNameLength = 80

// A Spec is the request for a campaign. Empty strings, zero times and nil mean not set.
type Spec struct {
	Name, Agent            string
	CallsPerMinute         float64
	Budget                 *float64 // in units of the currency
	StartsAt, EndsAt       time.Time
	Timezone               string
	WorkingHours           []Shift
	Strategy               string
	Retry                  json.RawMessage
	Duplicates             string
	Classification         string
	ContactTimezone        bool
	TrunkID, RouteID, From string
	Open                   bool
	DNC                    string
	Rows                   int // rows of planned calls
}

// Facts are the data that a spec is validated against.
type Facts struct {
	Now     time.Time
	Horizon time.Duration // maximum time until the end of a campaign that accepts further calls; 0 means 30 days
	// Agent is the ID of the spec's agent; empty if it is unknown.
	Agent  string
	Routes []admission.Trunk // routes that the agent may use
	// Zone and Window are the organization's time zone and calling window.
	Zone   string
	Window market.Week
	// Market is the organization's package; nil for none.
	Market    *market.Package
	Locations []market.Location // locations of the contacts
	MaxRows   int               // 0 means no limit
}

// CheckDNC refuses a decision other than block or skip.
func CheckDNC(decision string) error {
	if decision == "" || decision == Block || decision == Skip {
		return nil
	}
	return control.Refuse(control.CodeDNCDecision, fmt.Sprintf("dnc must be block or skip, not %q", decision))
}

// Build validates a spec and returns the campaign. If several refusals apply, it returns the first in the API
// contract's order of checks.
func (s Spec) Build(w Facts) (Campaign, error) {
	c := Campaign{
		Status: Draft, Name: strings.TrimSpace(s.Name), AgentID: w.Agent, AgentName: s.Agent,
		StartsAt: s.StartsAt, EndsAt: s.EndsAt, Open: s.Open, ContactTimezone: s.ContactTimezone,
		CallsPerMinute: int(s.CallsPerMinute), DNC: cmp.Or(s.DNC, Block), CreatedAt: w.Now, UpdatedAt: w.Now,
	}
	if w.Market != nil {
		c.Market = w.Market.Code
	}
	for _, step := range []func(*Campaign, Facts) error{
		s.window, s.agent, s.zone, s.binding, s.hoursWithin, s.form, s.classification,
	} {
		if err := step(&c, w); err != nil {
			return Campaign{}, err
		}
	}
	return c, nil
}

// window is step 4 of the API contract's order of checks.
func (s Spec) window(_ *Campaign, w Facts) error {
	horizon := cmp.Or(w.Horizon, Horizon)
	switch {
	case !s.StartsAt.IsZero() && !s.EndsAt.IsZero() && !s.EndsAt.After(s.StartsAt):
		return control.Refuse(control.CodeCampaignWindow, "ends_at must be later than starts_at")
	case s.Open && s.EndsAt.IsZero():
		return control.Refuse(control.CodeOpenEndRequired, "ends_at is required with accepts_call_additions")
	case s.Open && s.EndsAt.After(w.Now.Add(horizon)):
		return control.Refuse(control.CodeOpenEndTooFar, fmt.Sprintf("ends_at must be within %v with accepts_call_additions", horizon))
	default:
		return nil
	}
}

func (s Spec) agent(_ *Campaign, w Facts) error {
	if w.Agent == "" {
		return control.Refuse(control.CodeCampaignAgentUnknown, "agent_id names no agent of the organization")
	}
	return nil
}

func (s Spec) zone(c *Campaign, w Facts) error {
	if strings.TrimSpace(s.Timezone) == "" {
		c.Timezone, c.TimezoneSource = w.Zone, ZoneOfOrganization
		return nil
	}
	if _, err := control.Zone(s.Timezone); err != nil {
		return control.Refuse(control.CodeCampaignTimezone, err.Error())
	}
	c.Timezone, c.TimezoneSource = s.Timezone, ZoneOfRequest
	return nil
}

// binding is step 6 of the API contract's order of checks.
func (s Spec) binding(c *Campaign, w Facts) error {
	if s.TrunkID == "" && (s.RouteID != "" || s.From != "") {
		return control.Refuse(control.CodeBindingIncomplete, "route_id and from_number require trunk_id")
	}
	var matches []Binding
	for _, t := range w.Routes {
		if s.TrunkID != "" && t.ID != s.TrunkID {
			continue
		}
		for _, g := range t.Subgroups {
			from := callerNumber(g.CallerNumbers, s.From)
			if from == "" || s.RouteID != "" && g.ID != s.RouteID {
				continue
			}
			matches = append(matches, Binding{TrunkID: t.ID, RouteID: g.ID, FromNumber: from})
		}
	}
	switch len(matches) {
	case 0:
		return control.Refuse(control.CodeRouteUnresolved, "no trunk and subgroup of the agent match trunk_id, route_id and from_number")
	case 1:
		c.Binding = matches[0]
		return nil
	default:
		return control.Refuse(control.CodeRouteAmbiguous, fmt.Sprintf("%d subgroups match: choose one with trunk_id and route_id", len(matches)))
	}
}

// callerNumber returns the requested number if the pool has it, else an empty string. If no number is requested, it
// returns the first number of the pool.
func callerNumber(pool []string, requested string) string {
	i := slices.IndexFunc(pool, func(n string) bool {
		return requested == "" || control.Digits(n) == control.Digits(requested)
	})
	if i < 0 {
		return ""
	}
	return pool[i]
}

// hoursWithin is step 7 of the API contract's order of checks. It ignores malformed rows, because form refuses them.
func (s Spec) hoursWithin(_ *Campaign, w Facts) error {
	class := market.Classification(cmp.Or(s.Classification, string(market.Marketing)))
	floor := w.Window
	if w.Market != nil {
		floor = w.Market.Floor(w.Now, w.Locations, class, w.Window)
	}
	for i, row := range s.WorkingHours {
		h, shift, err := row.parse()
		if err == nil && shift.isWider(h, floor) {
			return control.Refuse(control.CodeHoursWider, fmt.Sprintf(
				"working_hours[%d], %s to %s, exceeds the calling window: %s", i, shift.Start, shift.End, formatFloor(floor, shift.Days)))
		}
	}
	return nil
}

// formatFloor formats the allowed hours of some days.
func formatFloor(floor market.Week, days []int) string {
	var all []string
	for _, d := range days {
		text := "none"
		if h := floor[d]; !h.IsEmpty() {
			text = h.From.String() + "-" + h.To.String()
		}
		all = append(all, []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}[d]+" "+text)
	}
	return strings.Join(all, ", ")
}

// Paces returns the accepted values of calls_per_minute.
func Paces() []float64 { return []float64{1, 2, 5, 10, 20, 30, 60, 100, 200} }

// maxBudget bounds budgets, in currency units: sums of their billionths fit into 64 bits.
const maxBudget = 1e9

// CheckBudget refuses a budget that is not a positive amount.
func CheckBudget(units float64) error {
	if units >= 1e-9 && units <= maxBudget { // the comparison is false for NaN, too
		return nil
	}
	return control.Refuse(control.CodeCampaignSpec,
		fmt.Sprintf("budget must be more than 0 and at most 1000000000, not %v; null means no limit", units))
}

// form is the first half of step 8 of the API contract's order of checks.
func (s Spec) form(c *Campaign, w Facts) error {
	bad := func(format string, args ...any) error {
		return control.Refuse(control.CodeCampaignSpec, fmt.Sprintf(format, args...))
	}
	if n := utf8.RuneCountInString(c.Name); n < 1 || n > maxNameLength {
		return bad("name must have 1 to %d characters, not %d", maxNameLength, n)
	}
	if !slices.Contains(Paces(), s.CallsPerMinute) {
		return bad("calls_per_minute must be one of %v, not %v", Paces(), s.CallsPerMinute)
	}
	if s.Budget != nil {
		if err := CheckBudget(*s.Budget); err != nil {
			return err
		}
		c.Budget = pricing.Round(*s.Budget)
	}
	if w.MaxRows > 0 && s.Rows > w.MaxRows {
		return bad("the list has more than %d rows", w.MaxRows)
	}
	var err error
	if c.Retry, err = retry.Parse(retry.Strategy(cmp.Or(s.Strategy, string(retry.Standard))), s.Retry); err != nil {
		return bad("%v", err)
	}
	c.WorkingHours = []Shift{}
	for i, row := range s.WorkingHours {
		_, shift, err := row.parse()
		if err != nil {
			return bad("working_hours[%d]: %v", i, err)
		}
		c.WorkingHours = append(c.WorkingHours, shift)
	}
	c.Duplicates = contactfile.DuplicateAction(cmp.Or(s.Duplicates, string(contactfile.RejectDuplicates)))
	actions := []contactfile.DuplicateAction{contactfile.RejectDuplicates, contactfile.KeepFirst, contactfile.KeepLast}
	if !slices.Contains(actions, c.Duplicates) {
		return bad("duplicate_action must be reject, keep_first or keep_last, not %q", s.Duplicates)
	}
	return nil
}

func (s Spec) classification(c *Campaign, _ Facts) error {
	c.Classification = market.Classification(cmp.Or(s.Classification, string(market.Marketing)))
	if !slices.Contains(market.Classifications(), c.Classification) {
		return control.Refuse(control.CodeCampaignClassification,
			fmt.Sprintf("classification must be one of %v, not %q", market.Classifications(), s.Classification))
	}
	return nil
}
