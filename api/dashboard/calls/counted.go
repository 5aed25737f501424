package calls

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/store"
)

// without is the value of the campaign filter that selects calls of no campaign.
const without = "none"

// countedFilters select calls as the Overview page counts them. The API does not have them.
func countedFilters() []filter {
	outcomes := []ui.Option{{Label: "any"}}
	for o := range overview.Outcomes {
		outcomes = append(outcomes, ui.Option{Value: o.Key(), Label: o.String()})
	}
	outcomes = append(
		outcomes, ui.Option{Value: "dialed", Label: "Dialed, any result"},
		ui.Option{Value: "connected", Label: "Answered by a person or a machine"},
	)
	days, hours := []ui.Option{{Label: "any"}}, []ui.Option{{Label: "any"}}
	days = append(days, ui.WeekdayOptions()...)
	for h := range 24 {
		hours = append(hours, ui.Option{Value: strconv.Itoa(h), Label: fmt.Sprintf("%02d:00", h)})
	}
	choice := func(name, label string, options ...ui.Option) filter {
		return filter{Field: ui.Field{Name: name, Label: label, Kind: ui.Select, Options: options}, more: true, own: true}
	}
	return []filter{
		choice("outcome", "Outcome", outcomes...),
		choice("success", "Goal", ui.Option{Label: "any"}, ui.Option{Value: "yes", Label: "reached"},
			ui.Option{Value: "no", Label: "not reached"}, ui.Option{Value: "known", Label: "known"}),
		choice("has", "Has", ui.Option{Label: "any"}, ui.Option{Value: "response_time", Label: "a response time"},
			ui.Option{Value: "cost", Label: "a known cost"}),
		choice("weekday", "Weekday", days...),
		choice("hour", "Hour", hours...),
	}
}

// search is what the filters select.
type search struct {
	query  url.Values // parameters of the API, and those of the page that the cursor must cover
	narrow store.Filter
}

// selection reads the filters. An invalid value is a control.Error with code invalid_filter.
func selection(r *ui.Request, all []filter, talkers []ui.Option) (search, error) {
	s := search{query: url.Values{}}
	values := map[string]filter{}
	for _, f := range all {
		values[f.Name] = f
		if f.Value == "" {
			continue
		}
		s.query.Set(f.Name, f.Value)
		if f.time {
			if f.at.IsZero() {
				return s, control.Refuse(control.CodeInvalidFilter, f.Label+": enter a date and time")
			}
			s.query.Set(f.Name, strconv.FormatInt(f.at.Unix(), 10))
		}
		if f.own && !slices.ContainsFunc(f.Options, func(o ui.Option) bool { return o.Value == f.Value }) {
			return s, control.Refuse(control.CodeInvalidFilter, f.Label+": choose one of the values")
		}
	}
	if from := values["created_after"].at; !from.IsZero() {
		from = from.Add(-time.Microsecond) // the page includes the first moment; the API does not
		s.narrow.CreatedAfter = &from
	}
	s.agent(talkers)
	if s.query.Get("campaign_id") == without {
		s.query.Del("campaign_id")
		s.query.Set("without", "campaign")
		s.narrow.WithoutCampaign = true
	}
	s.counted()
	if cursor := r.Query("cursor"); cursor != "" {
		s.query.Set("cursor", cursor)
	}
	return s, s.week(values, r.Zone())
}

// agent selects by id. The API selects by name, which an earlier agent may have had.
func (s *search) agent(talkers []ui.Option) {
	id := s.query.Get("agent_id")
	if !strings.HasPrefix(id, "agt_") {
		return
	}
	s.narrow.AgentIDs = []string{id}
	s.query.Set("agent", id)
	s.query.Del("agent_id")
	for _, o := range talkers {
		if o.Value == id && o.Label != id {
			s.query.Set("agent_id", o.Label)
		}
	}
}

func (s *search) counted() {
	k := &s.narrow.Counted
	for _, o := range overview.OutcomesOf(s.query.Get("outcome")) {
		k.Outcomes = append(k.Outcomes, int(o))
	}
	switch verdict := s.query.Get("success"); verdict {
	case "yes", "no":
		k.Successful = new(verdict == "yes")
	case "known":
		k.Judged = true
	}
	k.Timed, k.Costed = s.query.Get("has") == "response_time", s.query.Get("has") == "cost"
}

// maxWeekDays is the longest time range with a weekday or an hour, in days.
const maxWeekDays = 32

// week selects by weekday and hour.
func (s *search) week(values map[string]filter, zone *time.Location) error {
	number := func(name string) int {
		n, err := strconv.Atoi(s.query.Get(name))
		if err != nil {
			return -1
		}
		return n
	}
	weekday, hour := number("weekday"), number("hour")
	if weekday < 0 && hour < 0 {
		return nil
	}
	from, to := values["created_after"].at, values["created_before"].at
	if to.IsZero() {
		to = time.Now()
	}
	if from.IsZero() {
		from = to.AddDate(0, 0, -maxWeekDays+1)
	}
	if to.Sub(from) > maxWeekDays*24*time.Hour {
		return control.Refuse(control.CodeInvalidFilter, fmt.Sprintf("Weekday and Hour: choose a time range of at most %d days", maxWeekDays))
	}
	for _, span := range overview.Spans(from, to, zone, weekday, hour) {
		s.narrow.Created = append(s.narrow.Created, store.Span(span))
	}
	if s.narrow.Created == nil { // the range has no such hour
		s.narrow.Created = []store.Span{{From: from, To: from}}
	}
	return nil
}

// apply adds the conditions that the API does not have.
func (s *search) apply(f *store.Filter) {
	f.AgentIDs, f.WithoutCampaign, f.Counted, f.Created = s.narrow.AgentIDs, s.narrow.WithoutCampaign, s.narrow.Counted, s.narrow.Created
	if s.narrow.CreatedAfter != nil {
		f.CreatedAfter = s.narrow.CreatedAfter
	}
}

// readTime reads a time filter: local time, or RFC 3339 in links, where it is unambiguous. It returns the local time
// that the field shows.
func readTime(value string, zone *time.Location) (at time.Time, local string) {
	at, err := time.ParseInLocation(ui.DateTimeLayout, value, zone)
	if err == nil {
		return at, value
	}
	if at, err = time.Parse(time.RFC3339, value); err == nil {
		return at, at.In(zone).Format(ui.DateTimeLayout)
	}
	return time.Time{}, value
}
