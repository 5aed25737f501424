package simulate

import (
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/parley-voice/parley/campaigns/simulate/oracle"
)

// page shows the calls of each market by the callee's local hour.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Simulated calls by local hour</title>
<style>
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --bar: #2f6fb3; --bad: #c0392b; --rule: #ccc }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --paper: #16181c; --bar: #6aa7e6; --bad: #ff7b6b; --rule: #444 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 56rem; margin: 2rem auto; padding: 0 1rem }
svg { width: 100%; height: auto } text { fill: var(--ink); font: 11px system-ui, sans-serif } .bar { fill: var(--bar) } line { stroke: var(--rule) }
table { border-collapse: collapse } td, th { text-align: left; padding: .1rem 1rem .1rem 0 } .wrong { color: var(--bad); font-weight: 600 }
</style>
<h1>Simulated calls by local hour</h1>
<p>{{.Dials}} calls, {{.Terminal}} contacts in a final state, {{.Closed}} left by closed campaigns, {{.Waiting}} waiting at the end.</p>
<p class="{{if .Wrong}}wrong{{end}}">{{if .Wrong}}{{.Wrong}} findings{{else}}No finding.{{end}}</p>
{{range .Charts}}<h2>{{.Name}}</h2>
<svg viewBox="0 0 760 240" role="img" aria-label="Calls by the local hour of the callee, {{.Name}}">
<line x1="20" x2="750" y1="200" y2="200"/>
{{range .Bars}}<rect class="bar" x="{{.X}}" y="{{.Y}}" width="26" height="{{.Height}}"><title>{{.Hour}}:00 to {{.Hour}}:59, {{.Calls}} calls</title></rect>
<text x="{{.Middle}}" y="216" text-anchor="middle">{{.Hour}}</text>{{if .Calls}}<text x="{{.Middle}}" y="{{.Above}}" text-anchor="middle">{{.Short}}</text>{{end}}
{{end}}</svg>
{{end}}{{if .Findings}}<h2>First findings</h2><ol>{{range .Findings}}<li>{{.}}</li>{{end}}</ol>{{end}}
</html>
`

type chart struct {
	Name string
	Bars []bar
}

type bar struct {
	Hour, Calls                 int
	X, Y, Height, Middle, Above int
	Short                       string
}

// Plot writes a self-contained HTML page of a report.
func Plot(to io.Writer, r oracle.Report) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	var charts []chart
	for market, hours := range r.ByHour {
		c := chart{Name: map[string]string{"us": "United States", "kz": "Kazakhstan"}[market]}
		largest := max(1, slices.Max(hours[:]))
		for h, n := range hours {
			height := n * 170 / largest
			b := bar{Hour: h, Calls: n, X: 22 + 30*h, Y: 200 - height, Height: height, Middle: 35 + 30*h, Above: 196 - height, Short: shortNumber(n)}
			c.Bars = append(c.Bars, b)
		}
		charts = append(charts, c)
	}
	slices.SortFunc(charts, func(a, b chart) int { return len(b.Name) - len(a.Name) })
	return t.Execute(to, struct {
		oracle.Report
		Wrong  int
		Charts []chart
	}{r, r.Wrong(), charts})
}

// shortNumber formats a number in few characters.
func shortNumber(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	default:
		return fmt.Sprint(n)
	}
}
