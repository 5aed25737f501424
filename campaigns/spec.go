package campaigns

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/campaigns/rows"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/place"
)

// Horizon is how far ahead an open campaign may end.
const Horizon = 30 * 24 * time.Hour

// longestName is the length of a campaign's name in characters.
const longestName = 80

// A Spec is a campaign as it is asked for. Empty strings, zero times and nil
// stand for what is not said.
type Spec struct {
	Name, Agent            string
	CallsPerMinute         float64
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
	Rows                   int // of planned calls
}

// Surroundings are what a spec is held against.
type Surroundings struct {
	Now     time.Time
	Horizon time.Duration // of open campaigns; 0 means Horizon
	// Agent is the id of the agent of the spec's name, empty if there is none.
	Agent  string
	Routes []place.Trunk // that the agent may call through
	// Zone is the organization's, Window when it calls.
	Zone   string
	Window market.Week
	// Market is the organization's package, nil for none; Places are where the
	// contacts of the spec are.
	Market   *market.Package
	Places   []market.Place
	MostRows int // 0 any
}

// CheckDNC refuses a decision that is none.
func CheckDNC(decision string) error {
	if decision == "" || decision == Block || decision == Skip {
		return nil
	}
	return control.Refuse(control.CodeDNCDecision, fmt.Sprintf("dnc is block or skip, not %q", decision))
}

// Settle makes a campaign of a spec, or refuses it with the first of the
// contract's codes that applies, in the contract's order.
func (s Spec) Settle(w Surroundings) (Campaign, error) {
	c := Campaign{
		Status: Draft, Name: strings.TrimSpace(s.Name), AgentID: w.Agent, AgentName: s.Agent,
		StartsAt: s.StartsAt, EndsAt: s.EndsAt, Open: s.Open, ContactTimezone: s.ContactTimezone,
		CallsPerMinute: int(s.CallsPerMinute), DNC: orElse(s.DNC, Block), CreatedAt: w.Now, UpdatedAt: w.Now,
	}
	if w.Market != nil {
		c.Market = w.Market.Code
	}
	for _, step := range []func(*Campaign, Surroundings) error{
		s.window, s.agent, s.zone, s.binding, s.hoursWithin, s.form, s.classification,
	} {
		if err := step(&c, w); err != nil {
			return Campaign{}, err
		}
	}
	return c, nil
}

// window is step 4.
func (s Spec) window(_ *Campaign, w Surroundings) error {
	horizon := w.Horizon
	if horizon == 0 {
		horizon = Horizon
	}
	switch {
	case !s.StartsAt.IsZero() && !s.EndsAt.IsZero() && !s.EndsAt.After(s.StartsAt):
		return control.Refuse(control.CodeCampaignWindow, "ends_at is not later than starts_at")
	case s.Open && s.EndsAt.IsZero():
		return control.Refuse(control.CodeOpenEndRequired, "a campaign that accepts call additions needs ends_at")
	case s.Open && s.EndsAt.After(w.Now.Add(horizon)):
		return control.Refuse(control.CodeOpenEndTooFar, fmt.Sprintf("a campaign that accepts call additions ends within %v", horizon))
	default:
		return nil
	}
}

func (s Spec) agent(_ *Campaign, w Surroundings) error {
	if w.Agent == "" {
		return control.Refuse(control.CodeCampaignAgentUnknown, "no agent of this name")
	}
	return nil
}

func (s Spec) zone(c *Campaign, w Surroundings) error {
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

// binding is step 6.
func (s Spec) binding(c *Campaign, w Surroundings) error {
	if s.TrunkID == "" && (s.RouteID != "" || s.From != "") {
		return control.Refuse(control.CodeBindingIncomplete, "route_id and from_number go with a trunk_id")
	}
	var ways []Binding
	for _, t := range w.Routes {
		if s.TrunkID != "" && t.ID != s.TrunkID {
			continue
		}
		for _, g := range t.Subgroups {
			from := caller(g.CallerNumbers, s.From)
			if from == "" || s.RouteID != "" && g.ID != s.RouteID {
				continue
			}
			ways = append(ways, Binding{TrunkID: t.ID, RouteID: g.ID, FromNumber: from})
		}
	}
	switch len(ways) {
	case 0:
		return control.Refuse(control.CodeRouteUnresolved, "no trunk and subgroup of the agent fits trunk_id, route_id and from_number")
	case 1:
		c.Binding = ways[0]
		return nil
	default:
		return control.Refuse(control.CodeRouteAmbiguous, fmt.Sprintf("%d subgroups fit: name one with trunk_id and route_id", len(ways)))
	}
}

// caller is the number of a pool that was asked for, the first where none was.
func caller(pool []string, asked string) string {
	i := slices.IndexFunc(pool, func(n string) bool {
		return asked == "" || control.Digits(n) == control.Digits(asked)
	})
	if i < 0 {
		return ""
	}
	return pool[i]
}

// hoursWithin is step 7. It looks at rows of the right form alone.
func (s Spec) hoursWithin(_ *Campaign, w Surroundings) error {
	class := market.Classification(orElse(s.Classification, string(market.Marketing)))
	floor := w.Window
	if w.Market != nil {
		floor = w.Market.Floor(w.Now, w.Places, class, w.Window)
	}
	for i, row := range s.WorkingHours {
		h, shift, err := row.hours()
		if err == nil && shift.wider(h, floor) {
			return control.Refuse(control.CodeHoursWider, fmt.Sprintf(
				"working_hours[%d], %s to %s, is wider than the calling window, which is %s", i, shift.Start, shift.End, show(floor, shift.Days)))
		}
	}
	return nil
}

// show is a floor on some days, to be read.
func show(floor market.Week, days []int) string {
	var all []string
	for _, d := range days {
		text := "none"
		if h := floor[d]; !h.None() {
			text = h.From.String() + "-" + h.To.String()
		}
		all = append(all, []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}[d]+" "+text)
	}
	return strings.Join(all, ", ")
}

// Paces are the tiers of calls per minute.
func Paces() []float64 { return []float64{1, 2, 5, 10, 20, 30, 60, 100, 200} }

// form is the first half of step 8.
func (s Spec) form(c *Campaign, w Surroundings) error {
	bad := func(format string, args ...any) error {
		return control.Refuse(control.CodeCampaignSpec, fmt.Sprintf(format, args...))
	}
	if n := utf8.RuneCountInString(c.Name); n < 1 || n > longestName {
		return bad("name has 1 to %d characters, not %d", longestName, n)
	}
	if !slices.Contains(Paces(), s.CallsPerMinute) {
		return bad("calls_per_minute is one of %v, not %v", Paces(), s.CallsPerMinute)
	}
	if w.MostRows > 0 && s.Rows > w.MostRows {
		return bad("planned_calls has at most %d rows, not %d", w.MostRows, s.Rows)
	}
	var err error
	if c.Retry, err = retry.Parse(retry.Strategy(orElse(s.Strategy, string(retry.Standard))), s.Retry); err != nil {
		return bad("%v", err)
	}
	c.WorkingHours = []Shift{}
	for i, row := range s.WorkingHours {
		_, shift, err := row.hours()
		if err != nil {
			return bad("working_hours[%d]: %v", i, err)
		}
		c.WorkingHours = append(c.WorkingHours, shift)
	}
	c.Duplicates = rows.DuplicateAction(orElse(s.Duplicates, string(rows.RejectDuplicates)))
	if !slices.Contains([]rows.DuplicateAction{rows.RejectDuplicates, rows.KeepFirst, rows.KeepLast}, c.Duplicates) {
		return bad("duplicate_action is reject, keep_first or keep_last, not %q", s.Duplicates)
	}
	return nil
}

func (s Spec) classification(c *Campaign, _ Surroundings) error {
	c.Classification = market.Classification(orElse(s.Classification, string(market.Marketing)))
	if !slices.Contains(market.Classifications(), c.Classification) {
		return control.Refuse(control.CodeCampaignClassification, fmt.Sprintf("classification is one of %v, not %q", market.Classifications(), s.Classification))
	}
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
