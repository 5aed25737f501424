package calls

import (
	"maps"
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

// slowestFirst is the value of the order that begins with the slowest response.
const slowestFirst = "slowest"

// without is the value of the campaign filter that selects calls of no campaign.
const without = "none"

// countedFilters select calls as the Overview page counts them. The API does not have them.
func countedFilters(texts *ui.Texts, dates ui.Dates) []filter {
	outcomes := []ui.Option{{Label: texts.T("ui.filter.any")}}
	for o := range overview.Outcomes {
		outcomes = append(outcomes, ui.Option{Value: o.Key(), Label: texts.Label("calls.outcome", o.Key())})
	}
	outcomes = append(
		outcomes, ui.Option{Value: "dialed", Label: texts.T("calls.filters.outcome.dialed")},
		ui.Option{Value: "connected", Label: texts.T("calls.filters.outcome.connected")},
	)
	days, hours := []ui.Option{{Label: texts.T("ui.filter.any")}}, []ui.Option{{Label: texts.T("ui.filter.any")}}
	days = append(days, ui.WeekdayOptions(texts)...)
	for h := range 24 {
		hours = append(hours, ui.Option{Value: strconv.Itoa(h), Label: dates.Hour(h)})
	}
	choice := func(name, label string, options ...ui.Option) filter {
		return filter{Field: ui.Field{Name: name, Label: label, Kind: ui.Select, Options: options}, more: true, own: true}
	}
	return []filter{
		choice("outcome", texts.T("calls.filters.outcome.label"), outcomes...),
		choice("success", texts.T("calls.filters.success.label"), ui.Option{Label: texts.T("ui.filter.any")},
			ui.Option{Value: "yes", Label: texts.T("calls.filters.success.yes")},
			ui.Option{Value: "no", Label: texts.T("calls.filters.success.no")}, ui.Option{
				Value: "known",
				Label: texts.T("calls.filters.success.known"),
			}),
		choice("has", texts.T("calls.filters.has.label"), ui.Option{Label: texts.T("ui.filter.any")},
			ui.Option{Value: "response_time", Label: texts.T("calls.filters.has.response_time")},
			ui.Option{Value: "cost", Label: texts.T("calls.filters.has.cost")}),
		choice("weekday", texts.T("calls.filters.weekday.label"), days...),
		choice("hour", texts.T("calls.filters.hour.label"), hours...),
	}
}

// search is what the filters select.
type search struct {
	filters []filter
	query   url.Values // parameters of the API, and those of the page that the cursor must cover
	link    url.Values // parameters of the page, without the cursor
	text    string     // what was said
	tags    []string   // tags that the organization uses
	narrow  store.Filter
}

// suffix returns the filters as the end of an address.
func (s *search) suffix() string {
	if len(s.link) == 0 {
		return ""
	}
	return "?" + s.link.Encode()
}

// readSearch reads the filters. An invalid value is a control.Error with code invalid_filter.
func readSearch(r *ui.Request) (search, error) {
	s := search{query: url.Values{}, link: url.Values{}}
	talkers, err := agentOptions(r)
	if err != nil {
		return s, err
	}
	if s.tags, err = store.Tags(r.Context(), r.DB(), r.Org()); err != nil {
		return s, err
	}
	s.filters = filters(r, talkers, tagOptions(r, s.tags))
	if cursor := r.Query("cursor"); cursor != "" {
		s.query.Set("cursor", cursor)
	}
	for _, f := range s.filters {
		if f.Value != "" {
			s.query.Set(f.Name, f.Value)
			s.link.Set(f.Name, r.Query(f.Name))
		}
	}
	for _, f := range s.filters {
		if err = s.check(r.Texts, f); err != nil {
			return s, err
		}
	}
	from, to, err := s.days(r)
	if err != nil {
		return s, err
	}
	s.agent(talkers)
	if s.query.Get("order") == slowestFirst {
		s.query.Del("order")
		s.query.Set(slowestFirst, "yes")
		s.narrow.Slowest = true
	}
	if s.query.Get("campaign_id") == without {
		s.query.Del("campaign_id")
		s.query.Set("without", "campaign")
		s.narrow.WithoutCampaign = true
	}
	s.counted()
	s.text = s.query.Get("q")
	return s, s.week(r.Texts, from, to, r.Zone())
}

// check returns an error if the value of a filter is invalid. It writes times as the API reads them.
func (s *search) check(texts *ui.Texts, f filter) error {
	switch {
	case f.Value == "":
	case f.time && f.at.IsZero():
		return control.Refuse(control.CodeInvalidFilter, texts.T("calls.filters.invalid.time", "filter", f.Label))
	case f.time:
		s.query.Set(f.Name, strconv.FormatInt(f.at.Unix(), 10))
	case f.own && !slices.ContainsFunc(f.Options, func(o ui.Option) bool { return o.Value == f.Value }):
		return control.Refuse(control.CodeInvalidFilter, texts.T("calls.filters.invalid.value", "filter", f.Label))
	}
	return nil
}

// days selects by the dates of the form or, without any, by a range of days.
func (s *search) days(r *ui.Request) (from, to time.Time, err error) {
	for _, f := range s.filters {
		switch f.Name {
		case "created_after":
			from = f.at
		case "created_before":
			to = f.at
		}
	}
	if key := r.Query("range"); key != "" && from.IsZero() && to.IsZero() {
		if from, to = rangeOf(r.Texts, key, time.Now(), r.Zone()); from.IsZero() {
			return from, to, control.Refuse(control.CodeInvalidFilter, r.Texts.T("calls.filters.invalid.range"))
		}
		s.query.Set("range", key)
		s.link.Set("range", key)
		s.narrow.CreatedBefore = &to
	}
	if !from.IsZero() {
		after := from.Add(-time.Microsecond) // the page includes the first moment; the API does not
		s.narrow.CreatedAfter = &after
	}
	return from, to, nil
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
	switch success := s.query.Get("success"); success {
	case "yes", "no":
		k.Successful = new(success == "yes")
	case "known":
		k.KnownSuccess = true
	}
	s.narrow.Tag = s.query.Get("tag")
	s.narrow.Scores = scoresOf(s.query.Get("score"))
	k.Timed, k.Costed = s.query.Get("has") == "response_time", s.query.Get("has") == "cost"
}

// maxWeekDays is the longest time range with a weekday or an hour, in days.
const maxWeekDays = 32

// week selects by weekday and hour.
func (s *search) week(texts *ui.Texts, from, to time.Time, zone *time.Location) error {
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
	if to.IsZero() {
		to = time.Now()
	}
	if from.IsZero() {
		from = to.AddDate(0, 0, -maxWeekDays+1)
	}
	if to.Sub(from) > maxWeekDays*24*time.Hour {
		return control.Refuse(control.CodeInvalidFilter, texts.T("calls.filters.invalid.weekday", "days", maxWeekDays))
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
	f.Text, f.Tag, f.Scores, f.Slowest = s.text, s.narrow.Tag, s.narrow.Scores, s.narrow.Slowest
	if s.narrow.CreatedAfter != nil {
		f.CreatedAfter = s.narrow.CreatedAfter
	}
	if s.narrow.CreatedBefore != nil {
		f.CreatedBefore = s.narrow.CreatedBefore
	}
}

// dayRange is a choice of days.
type dayRange struct {
	Key, Label string
	Href       string
	Here       bool

	first, last int // days before today
}

func dayRanges(texts *ui.Texts) []dayRange {
	return []dayRange{
		{Key: "today", Label: texts.T("calls.range.today")},
		{Key: "yesterday", Label: texts.T("calls.range.yesterday"), first: 1, last: 1},
		{Key: "week", Label: texts.T("calls.range.week"), first: 6},
		{Key: "month", Label: texts.T("calls.range.month"), first: 29},
	}
}

// rangeOf returns the days of a range; the zero time if there is no such range.
func rangeOf(texts *ui.Texts, key string, now time.Time, zone *time.Location) (from, to time.Time) {
	y, m, d := now.In(zone).Date()
	for _, r := range dayRanges(texts) {
		if r.Key == key {
			return time.Date(y, m, d-r.first, 0, 0, 0, 0, zone), time.Date(y, m, d-r.last+1, 0, 0, 0, 0, zone)
		}
	}
	return time.Time{}, time.Time{}
}

// rangeLinks returns links to the ranges, with the other filters as they are.
func rangeLinks(texts *ui.Texts, path string, link url.Values) []dayRange {
	own := link.Has("created_after") || link.Has("created_before")
	all := append([]dayRange{{Label: texts.T("calls.range.all")}}, dayRanges(texts)...)
	for i := range all {
		to := maps.Clone(link)
		for _, name := range []string{"created_after", "created_before", "range"} {
			to.Del(name)
		}
		if all[i].Key != "" {
			to.Set("range", all[i].Key)
		}
		all[i].Href, all[i].Here = path+"?"+to.Encode(), !own && link.Get("range") == all[i].Key
	}
	return all
}

// An order is a choice of the order of the list.
type order struct {
	Label, Href string
	Here        bool
}

// orderLinks returns links to the common orders, with the filters as they are.
func orderLinks(texts *ui.Texts, path string, link url.Values) []order {
	var all []order
	for _, o := range []struct{ value, key string }{{"", "calls.filters.order.newest"}, {slowestFirst, "calls.filters.order.slowest"}} {
		to := maps.Clone(link)
		if to.Del("order"); o.value != "" {
			to.Set("order", o.value)
		}
		all = append(all, order{ui.Capitalize(texts.T(o.key)), path + "?" + to.Encode(), link.Get("order") == o.value})
	}
	return all
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
