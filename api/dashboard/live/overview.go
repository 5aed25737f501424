package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	campaignpages "github.com/parley-voice/parley/api/dashboard/campaigns"
	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/overview"
)

// A report has the figures of a period.
type report struct {
	spans

	period        period
	texts         *ui.Texts
	dates         ui.Dates
	links         links
	page          func(path string) string
	currency      string
	Total         overview.Sums
	now, before   overview.Sums // complete hours, and the same hours of the period before
	slots         []slot
	week          [7][24]cell
	Agents, Camps ranking
}

// A cell counts the calls of an hour of the week.
type cell struct{ calls, dialed, answered int }

// shownRows limits the agents and campaigns on the page. The export has all.
const shownRows = 25

// A ranking compares agents or campaigns.
type ranking struct {
	Rows     []ranked
	Kind     string // agent or campaign
	Title    string
	Currency string
}

// Shown and Hidden divide the rows.
func (k ranking) Shown() []ranked { return k.Rows[:min(len(k.Rows), shownRows)] }

// Hidden is the number of rows that only the export has.
func (k ranking) Hidden() int { return len(k.Rows) - len(k.Shown()) }

type ranked struct {
	figures

	ID, Name, Page string
}

func (l *Live) readReport(ctx context.Context, r *ui.Request, now time.Time) (*report, error) {
	p := &report{
		period: periodOf(r.Query("period")), texts: r.Texts, dates: ui.DatesOf(r.Member), links: linksOf(r), page: r.URL, currency: l.Currency,
	}
	p.spans = p.period.at(now, p.dates.Zone)
	var hours []overview.Hour
	var groups []overview.Group
	if err := together(
		func() (err error) { hours, err = overview.Hours(ctx, r.DB(), r.Org(), p.from, p.to); return err },
		func() (err error) { groups, err = overview.Groups(ctx, r.DB(), r.Org(), p.from, p.to); return err },
		func() (err error) {
			p.before, err = overview.Total(ctx, r.DB(), r.Org(), p.beforeFrom, p.beforeDone)
			return err
		},
	); err != nil {
		return nil, err
	}
	names, err := overview.Names(ctx, r.DB(), r.Org(), groups)
	if err != nil {
		return nil, err
	}
	p.addHours(hours)
	p.Agents = p.rank(groups, "agent", names, func(g overview.Group) (string, string) {
		if g.Agent == "" {
			return "", r.Texts.T("live.ranking.agent.other")
		}
		return g.Agent, r.Texts.T("live.ranking.agent.deleted")
	})
	p.Agents.Title = r.Texts.T("live.ranking.agent.title")
	p.Camps = p.rank(groups, "campaign", names, func(g overview.Group) (string, string) {
		switch {
		case g.Agent == "":
			return "", r.Texts.T("live.ranking.campaign.other")
		case g.Campaign == "":
			return withoutCampaign, r.Texts.T("live.ranking.campaign.none")
		}
		return g.Campaign, r.Texts.T("live.ranking.campaign.deleted")
	})
	p.Camps.Title = r.Texts.T("live.ranking.campaign.title")
	return p, nil
}

// together runs reads at the same time: the database uses several processors for them.
func together(all ...func() error) error {
	var tasks sync.WaitGroup
	errs := make([]error, len(all))
	for i, read := range all {
		tasks.Go(func() { errs[i] = read() })
	}
	tasks.Wait()
	return errors.Join(errs...)
}

// withoutCampaign stands for the id of a campaign in the list of calls.
const withoutCampaign = "none"

func (p *report) addHours(hours []overview.Hour) {
	p.slots = p.period.slots(p.spans, p.dates.Zone)
	at := 0
	for i := range hours {
		h := &hours[i]
		p.Total.Merge(&h.Sums)
		if h.At.Before(p.done) {
			p.now.Merge(&h.Sums)
		}
		for at < len(p.slots)-1 && !h.At.Before(p.slots[at].to) {
			at++
		}
		p.slots[at].Merge(&h.Sums)
		day, hour := overview.LocalHour(h.At, p.dates.Zone)
		c := &p.week[day][hour]
		c.calls, c.dialed, c.answered = c.calls+h.Calls, c.dialed+h.Dialed(), c.answered+h.Outcomes[overview.Answered]
	}
}

// rank adds up groups by id; key returns the id, and a text for one without name. Groups without id are counted together,
// and their calls cannot be selected.
func (p *report) rank(
	groups []overview.Group, kind string, names map[string]string, key func(overview.Group) (id, unnamed string),
) ranking {
	all := map[string]*ranked{}
	for i := range groups {
		id, unnamed := key(groups[i])
		row := all[id]
		if row == nil {
			row = &ranked{ID: id, Name: cmp.Or(names[id], unnamed), figures: figures{Sums: &overview.Sums{}}}
			if id != "" {
				row.figures = p.figures(&overview.Sums{}, kind+"_id", id)
			}
			if names[id] != "" {
				row.Page = p.page(kind + "s/" + id)
			}
			all[id] = row
		}
		row.Merge(&groups[i].Sums)
	}
	k := ranking{Kind: kind, Currency: p.currency}
	for _, row := range all {
		k.Rows = append(k.Rows, *row)
	}
	slices.SortFunc(k.Rows, func(a, b ranked) int { return cmp.Or(b.Calls-a.Calls, strings.Compare(a.ID, b.ID)) })
	return k
}

// figures returns the numbers of calls of the period.
func (p *report) figures(s *overview.Sums, filters ...string) figures {
	return figures{s, func(more []string) string { return p.links.between(p.from, p.to, more...) }, filters}
}

func (p *report) slotFigures(s *slot) figures {
	return figures{Sums: &s.Sums, href: func(more []string) string { return p.links.between(s.from, s.to, more...) }}
}

// A tile is one figure of the period with its course.
type tile struct {
	Label       string
	Value       number
	Of          []number // text below
	Change      change
	Spark       template.HTML
	Second      number // second value, such as a higher percentile
	Kind, Other string // what the values are
}

func (p *report) tiles() []tile {
	f, now, before, texts := p.figures(&p.Total), &p.now, &p.before, p.texts
	course := func(value func(s *overview.Sums) float64) template.HTML {
		all := make([]float64, len(p.slots))
		for i := range p.slots {
			all[i] = value(&p.slots[i].Sums)
		}
		return chart.Spark(all)
	}
	calls := func(s *overview.Sums) float64 { return float64(s.Calls) }
	cost := func(s *overview.Sums) float64 { return float64(s.CostNano) }
	return []tile{
		{
			Label: texts.T("live.tile.calls.label"), Value: f.All(), Of: fill(texts.T("live.tile.calls.of", "dialed", place(0)), f.Dialed()),
			Change: relative(texts, calls(now), calls(before), 0), Spark: course(calls),
		},
		{
			Label: texts.T("live.tile.answer_rate.label"), Value: f.AnswerRate(),
			Of:     fill(texts.T("live.tile.answer_rate.of", "answered", place(0), "dialed", place(1)), f.Answered(), f.Dialed()),
			Change: points(texts, answerRate(now), answerRate(before), 1), Spark: course(answerRate),
		},
		{
			Label: texts.T("live.tile.success.label"), Value: f.Success(),
			Of:     fill(texts.T("live.tile.success.of", "successful", place(0), "known", place(1)), f.Succeeded(), f.Known()),
			Change: points(texts, successRate(now), successRate(before), 1), Spark: course(successRate),
		},
		{
			Label: texts.T("live.tile.response_time.label"), Value: f.P50(), Kind: "p50", Second: f.P95(), Other: "p95",
			Of:     fill(texts.T("live.tile.response_time.of", "count", f.Times.Count(), "turns", place(0)), f.Turns()),
			Change: relative(texts, median(now), median(before), -1), Spark: course(median),
		},
		{
			Label: texts.T("live.tile.minutes.label"), Value: f.Minutes(),
			Of:     fill(texts.T("live.tile.minutes.of", "count", f.connected(), "calls", place(0)), f.Connected()),
			Change: relative(texts, minutes(now), minutes(before), 0), Spark: course(minutes),
		},
		{
			Label: texts.T("live.tile.cost.label"), Kind: p.currency, Value: f.Cost(),
			Of:     fill(texts.T("live.tile.cost.of", "count", f.Costed, "calls", place(0)), f.Priced()),
			Change: relative(texts, cost(now), cost(before), 0), Spark: course(cost),
		},
	}
}

// rate returns a share that is not a number without a whole.
func rate(n, of int) float64 {
	if of == 0 {
		return math.NaN()
	}
	return float64(n) / float64(of)
}

func answerRate(s *overview.Sums) float64  { return rate(s.Outcomes[overview.Answered], s.Dialed()) }
func successRate(s *overview.Sums) float64 { return rate(s.Successful, s.KnownSuccess) }

func median(s *overview.Sums) float64 {
	if ms, ok := s.Times.Percentile(.5); ok {
		return ms
	}
	return math.NaN()
}

// A legend explains a color.
type legend struct{ Class, Label string }

func outcomeLegend(texts *ui.Texts) (all []legend) {
	for o := range overview.Outcomes {
		all = append(all, legend{fmt.Sprintf("o%d", o), texts.Label("calls.outcome", o.Key())})
	}
	return all
}

// chartSlots returns the time axis. Its titles are made by describe.
func (p *report) chartSlots(describe func(f figures) string, filters []string) []chart.Slot {
	all := make([]chart.Slot, len(p.slots))
	for i := range p.slots {
		s := &p.slots[i]
		f := p.slotFigures(s)
		all[i] = chart.Slot{
			Tick: p.period.tick(s.from, p.dates), Title: p.period.name(*s, p.dates) + "\n" + describe(f),
			Href: f.linked(s.Calls, "", filters).Href,
		}
	}
	return all
}

func (p *report) outcomes() template.HTML {
	parts, classes, names := make([][]int, len(p.slots)), []string{}, outcomeLegend(p.texts)
	for i := range p.slots {
		parts[i] = p.slots[i].Outcomes[:]
	}
	for _, l := range names {
		classes = append(classes, l.Class)
	}
	slots := p.chartSlots(func(f figures) string {
		lines := []string{p.texts.T("ui.count.calls", "count", f.Calls)}
		for o, n := range f.Outcomes {
			if n > 0 {
				lines = append(lines, names[o].Label+": "+ui.Count(n))
			}
		}
		return strings.Join(lines, "\n")
	}, overFilter())
	return chart.Stacks(p.texts.T("live.chart.outcomes.title"), slots, parts, classes)
}

func (p *report) responses() template.HTML {
	ranges := make([]chart.Range, len(p.slots))
	for i := range p.slots {
		r := &ranges[i]
		if r.Low, r.OK = p.slots[i].Times.Percentile(.5); r.OK {
			r.High, _ = p.slots[i].Times.Percentile(.95)
		}
	}
	slots := p.chartSlots(func(f figures) string {
		if f.Times.Count() == 0 {
			return p.texts.T("live.chart.responses.none")
		}
		return p.texts.T("live.chart.responses.slot", "median", f.P50().Text, "high", f.P95().Text, "count", f.Times.Count())
	}, []string{"has", "response_time"})
	for i := range slots {
		if !ranges[i].OK {
			slots[i].Href = ""
		}
	}
	return chart.Band(p.texts.T("live.chart.responses.title"), slots, ranges, func(ms float64) string {
		if ms >= 1000 {
			return chart.Short(ms/1000) + " s"
		}
		return chart.Short(ms) + " ms"
	})
}

// A heatRow is a weekday on the heat map.
type heatRow struct {
	Day   string
	Cells []heatCell
}

type heatCell struct {
	number

	Title string
	Level int // 0 to heatLevels
}

const heatLevels = 5

// heat returns the calls by weekday and hour in the organization's time zone.
func (p *report) heat() (all []heatRow) {
	most := 1
	for _, day := range p.week {
		for _, c := range day {
			most = max(most, c.calls)
		}
	}
	for d, day := range p.week {
		row := heatRow{Day: ui.Weekdays(p.texts)[d]}
		for h, c := range day {
			x := heatCell{
				number: number{Text: ui.Count(c.calls)}, Level: (heatLevels*c.calls + most - 1) / most,
				Title: fmt.Sprintf("%s %s–%s\n%s", row.Day, p.dates.Hour(h), p.dates.Hour(h+1), p.texts.T("ui.count.calls", "count", c.calls)),
			}
			if c.dialed > 0 {
				x.Title += "\n" + p.texts.T("live.chart.heat.answered", "answered", c.answered, "share", percent(share(c.answered, c.dialed)))
			}
			if c.calls > 0 {
				x.Href = p.links.between(p.from, p.to, append(overFilter(), "weekday", fmt.Sprint(d), "hour", fmt.Sprint(h))...)
			}
			row.Cells = append(row.Cells, x)
		}
		all = append(all, row)
	}
	return all
}

type overviewPage struct {
	*report

	Steps     []step // only before the first call
	Setup     bool   // the set-up is not finished
	Idle      []campaignpages.Idle
	Periods   []tab
	Before    string
	Tiles     []tile
	Legend    []legend
	Outcomes  template.HTML
	Responses template.HTML
	Times     []timeRow
	Heat      []heatRow
	Late      bool // many calls are not counted yet
	New       bool // there are no earlier figures
	Export    string
}

type tab struct {
	Label, Href string
	Here        bool
}

// A timeRow is a slot in the table of the figures.
type timeRow struct {
	figures

	Name string
}

// manyPending is the number of uncounted calls from which the page mentions them.
const manyPending = 1000

func (l *Live) showOverview(r *ui.Request) (ui.Page, error) {
	page := ui.Page{Template: "overview.html", Title: r.Texts.T("live.overview.title")}
	has, err := overview.HasCalls(r.Context(), r.DB(), r.Org())
	if err != nil {
		return page, err
	}
	hidden, planned, err := overview.Setup(r.Context(), r.DB(), r.Org())
	if err != nil {
		return page, err
	}
	if !has && !hidden {
		s, fault := l.readSetup(r)
		if fault != nil {
			return page, fault
		}
		steps, fault := l.steps(r, s)
		page.Data = overviewPage{Steps: steps}
		return page, fault
	}
	p, err := l.readReport(r.Context(), r, time.Now())
	if err != nil {
		return page, err
	}
	var idle []campaignpages.Idle
	if l.Idle != nil {
		if idle, err = l.Idle(r, nil); err != nil {
			return page, err
		}
	}
	pending, err := overview.Pending(r.Context(), r.DB(), manyPending)
	o := overviewPage{
		report: p, Before: r.Texts.T("live.period." + p.period.Key + ".before"), Tiles: p.tiles(), Legend: outcomeLegend(r.Texts),
		Outcomes: p.outcomes(), Responses: p.responses(), Heat: p.heat(), Late: pending == manyPending, Idle: idle, New: p.before.Calls == 0,
		Setup: !hidden && !planned, Export: r.URL("overview/export?period=" + p.period.Key),
	}
	for _, choice := range periods() {
		o.Periods = append(o.Periods, tab{r.Texts.T("live.period." + choice.Key + ".label"), "?period=" + choice.Key, choice.Key == p.period.Key})
	}
	for i := range p.slots {
		o.Times = append(o.Times, timeRow{p.slotFigures(&p.slots[i]), p.period.name(p.slots[i], p.dates)})
	}
	page.Data = o
	return page, err
}
