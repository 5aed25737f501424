// Package report writes benchmark results as one self-contained HTML page, with distributions,
// charts over the number of calls, and the worst turns with their phases and audio.
package report

import (
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/result"
)

//go:embed page.html
var page embed.FS

// worst is the number of turns shown per file.
const worst = 10

// A view is a file prepared for the page.
type view struct {
	*result.File
	Missed  []result.Metric
	Plots   []plot
	Curves  []plot
	Worst   []fall
	Options string
}

// Write writes the page of files.
func Write(out io.Writer, files []*result.File) error {
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"number": result.Number, "amount": func(m result.Metric, at string) string { return amount(m, at) },
	}).ParseFS(page, "page.html")
	if err != nil {
		return err
	}
	var views []view
	for _, f := range files {
		v := view{File: f, Plots: distributions(f), Curves: curves(f), Worst: falls(f), Options: string(f.Options)}
		for _, m := range f.Metrics {
			if m.Verdict == result.Missed || m.Verdict == result.Unknown {
				v.Missed = append(v.Missed, m)
			}
		}
		views = append(views, v)
	}
	return t.Execute(out, views)
}

// amount formats a figure with its interval; a dash if it was not measured.
func amount(m result.Metric, at string) string {
	e, ok := m.At(at)
	switch {
	case !ok:
		return "–"
	case e.Low == e.High:
		return result.Number(e.Value)
	default:
		return fmt.Sprintf("%s (%s–%s)", result.Number(e.Value), result.Number(e.Low), result.Number(e.High))
	}
}

// A fall is a waterfall chart of the phases of a turn.
type fall struct {
	Title, Text, Marks, Heard string
	Figures                   string
	Bars                      []bar
	Sound                     template.URL
}

// A bar is one phase, in percent of the turn.
type bar struct {
	Name     string
	MS       string
	From, To float64
	Color    int
}

func (b bar) Width() float64 { return b.To - b.From }

// falls returns the charts of at most worst turns, the slowest first. It selects turns that have
// audio, and in a file of few turns also those that have only phases.
func falls(f *result.File) []fall {
	var turns []result.Turn
	for _, t := range f.Turns {
		if len(t.Sound) > 0 || len(t.Phases) > 0 && len(f.Turns) <= worst {
			turns = append(turns, t)
		}
	}
	slices.SortStableFunc(turns, func(a, b result.Turn) int { return int(b.Figures["wire_ms"] - a.Figures["wire_ms"]) })
	var all []fall
	for _, t := range turns[:min(worst, len(turns))] {
		x := fall{
			Title: fmt.Sprintf("%s, turn %d", t.Call, t.Number),
			Text:  t.Text,
			Marks: strings.Join(t.Marks, ", "),
			Heard: strings.Join(t.Heard, " "),
		}
		if t.Calls > 0 {
			x.Title += fmt.Sprintf(", with %d calls", t.Calls)
		}
		var figures []string
		for _, name := range slices.Sorted(maps.Keys(t.Figures)) {
			figures = append(figures, fmt.Sprintf("%s %s", name, result.Number(t.Figures[name])))
		}
		x.Figures = strings.Join(figures, " · ")
		x.Bars = bars(t.Phases)
		if len(t.Sound) > 0 {
			x.Sound = template.URL("data:audio/wav;base64," + base64.StdEncoding.EncodeToString(t.Sound)) //nolint:gosec // our own bytes, in base64
		}
		all = append(all, x)
	}
	return all
}

func bars(phases []result.Phase) []bar {
	total, at := 0.0, 0.0
	for _, p := range phases {
		total += p.MS
	}
	var all []bar
	for _, p := range phases {
		b := bar{Name: p.Name, MS: result.Number(p.MS), From: 100 * at / total, Color: color(p.Name)}
		at += p.MS
		b.To = 100 * at / total
		all = append(all, b)
	}
	return all
}

// color returns the color index of a phase.
func color(name string) int {
	return slices.Index(result.PhaseNames(), name)
}
