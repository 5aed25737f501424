package live

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/overview"
)

// export sends the figures of the page as CSV.
func (l *Live) export(r *ui.Request) error {
	p, err := l.readReport(r.Context(), r, time.Now())
	if err != nil {
		return err
	}
	r.Writer.Header().Set("Content-Type", "text/csv; charset=utf-8")
	r.Writer.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="overview-%s-%s.csv"`,
		p.period.Key, p.to.In(p.dates.Zone).Format(time.DateOnly)))
	if r.HTTP.Method == http.MethodHead {
		return nil
	}
	_, err = io.WriteString(r.Writer, "\ufeff") // makes spreadsheet programs read UTF-8
	w := csv.NewWriter(r.Writer)
	if err == nil {
		err = w.WriteAll(p.lines())
	}
	return err
}

// lines returns a line for the period, for the one before, and for each slot, hour of the week, agent and campaign.
func (p *report) lines() [][]string {
	head := []string{"figures", "name", "id", "from", "to", "calls", "dialed"}
	for o := range overview.Outcomes {
		head = append(head, o.Key())
	}
	head = append(head, "with_known_result", "successful", "minutes", "with_cost", "cost", "currency")
	head = append(head, "turns", "response_p50_ms", "response_p95_ms")
	all := [][]string{head}
	local := func(t time.Time) string { return t.In(p.dates.Zone).Format(time.RFC3339) }
	add := func(kind, name, id string, from, to time.Time, s *overview.Sums) {
		all = append(all, append([]string{kind, ui.CSVText(name), id, local(from), local(to)}, p.cells(s)...))
	}
	add("period", "", "", p.from, p.to, &p.Total)
	add("complete hours", "", "", p.from, p.done, &p.now)
	add("complete hours before", "", "", p.beforeFrom, p.beforeDone, &p.before)
	for i := range p.slots {
		add("time", p.period.name(p.slots[i], p.dates), "", p.slots[i].from, p.slots[i].to, &p.slots[i].Sums)
	}
	for d, day := range p.week {
		for h, c := range day {
			line := make([]string, len(head))
			copy(line, []string{
				"weekday and hour", fmt.Sprintf("%s %02d:00", ui.Weekdays(p.texts)[d], h), "", local(p.from), local(p.to),
				strconv.Itoa(c.calls), strconv.Itoa(c.dialed), strconv.Itoa(c.answered),
			})
			all = append(all, line)
		}
	}
	for _, k := range []ranking{p.Agents, p.Camps} {
		for _, row := range k.Rows {
			add(k.Kind, row.Name, row.ID, p.from, p.to, row.Sums)
		}
	}
	return all
}

func (p *report) cells(s *overview.Sums) []string {
	all := []string{strconv.Itoa(s.Calls), strconv.Itoa(s.Dialed())}
	for _, n := range s.Outcomes {
		all = append(all, strconv.Itoa(n))
	}
	decimal := func(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	all = append(all, strconv.Itoa(s.KnownSuccess), strconv.Itoa(s.Successful), decimal(minutes(s), 1), strconv.Itoa(s.Costed))
	cost, currency := "", ""
	if s.Costed > 0 {
		cost, currency = decimal(float64(s.CostNano)/1e9, 4), p.currency
	}
	all = append(all, cost, currency, strconv.Itoa(s.Times.Count()))
	for _, part := range []float64{.5, .95} {
		text := ""
		if ms, ok := s.Times.Percentile(part); ok {
			text = decimal(ms, 0)
		}
		all = append(all, text)
	}
	return all
}
