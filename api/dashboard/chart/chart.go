// Package chart draws SVG charts without inline styles; colors come from the stylesheet.
// It is pure.
package chart

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Texts has the texts of drawings by key.
type Texts interface {
	T(key string, args ...any) string
}

// A Phase is a phase of a turn's latency. Class is its CSS class.
type Phase struct {
	Key          string
	Label, Class string
	Help         string
}

// Phases returns the phases of a turn in order.
func Phases(texts Texts) []Phase {
	all := []Phase{
		{Key: "jitter_ms", Class: "p-net"},
		{Key: "vad_ms", Class: "p-vad"},
		{Key: "asr_ms", Class: "p-asr"},
		{Key: "classifier_ms", Class: "p-cls"},
		{Key: "eou_wait_ms", Class: "p-eou"},
		{Key: "llm_ms", Class: "p-llm"},
		{Key: "tool_ms", Class: "p-fun"},
		{Key: "tts_ms", Class: "p-tts"},
		{Key: "out_ms", Class: "p-out"},
	}
	for i := range all {
		key := "chart.phase." + strings.TrimSuffix(all[i].Key, "_ms")
		all[i].Label, all[i].Help = texts.T(key+".label"), texts.T(key+".help")
	}
	return all
}

// A Turn is a turn of a call as shown.
type Turn struct {
	Number                 int
	Total                  float64 // ms; 0 without a reply
	Disclosure             float64 // duration in ms, which is not part of Total; 0 without a disclosure
	Parts                  []Part
	At                     float64 // seconds from the answer of the call to the agent's reply; 0 if unknown
	Ending, Reason         string
	Interrupted, Estimated bool
	MergedFrom             int
	Slowest                bool // no answer took longer; the greeting does not count
	Bar                    template.HTML

	greeting bool // no caller spoke before
}

// lead is how many seconds before the caller's last word the playback of a turn begins.
const lead = 2.0

// From returns from where to play the turn: shortly before the caller's last word, in seconds from the answer of the
// call. It is 0 if this is not known.
func (t Turn) From() float64 {
	if t.At == 0 {
		return 0
	}
	return max(t.At-t.Total/1000-lead, 0.001)
}

// Disclosed formats the duration of the disclosure; empty without one.
func (t Turn) Disclosed() string {
	if t.Disclosure == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f s", t.Disclosure/1000)
}

// A Part is the time of one phase.
type Part struct {
	Phase

	MS float64
}

// Turns reads the turns of a call, as the API shows them, and draws each to the scale of the
// longest answer. The greeting does not count for the scale. Data that cannot be read is left
// out.
func Turns(texts Texts, items []json.RawMessage) []Turn {
	all, phases := make([]Turn, 0, len(items)), Phases(texts)
	longest := 1000.0
	for i, item := range items {
		var t struct {
			Turn        int
			Metrics     map[string]any
			Ending      string
			Reason      string
			Interrupted bool
			MergedFrom  int `json:"merged_from"`
		}
		if json.Unmarshal(item, &t) != nil {
			continue
		}
		out := Turn{Number: t.Turn, Ending: t.Ending, Reason: t.Reason, Interrupted: t.Interrupted, MergedFrom: t.MergedFrom}
		out.Estimated, _ = t.Metrics["estimated"].(bool)
		out.Total, _ = t.Metrics["turn_ms"].(float64)
		sum := 0.0
		for _, p := range phases {
			if ms, ok := t.Metrics[p.Key].(float64); ok && ms > 0 {
				out.Parts = append(out.Parts, Part{p, ms})
				sum += ms
			}
		}
		if raw, ok := t.Metrics["raw"].(map[string]any); ok {
			out.Disclosure, _ = raw["disclosure_ms"].(float64)
		}
		_, caller := t.Metrics["vad_ms"]
		if caller || t.Turn > 0 {
			longest = max(longest, sum)
		}
		out.greeting = !caller && i == 0
		all = append(all, out)
	}
	markSlowest(all)
	for i := range all {
		all[i].Bar = bar(texts, all[i], longest)
	}
	return all
}

func markSlowest(all []Turn) {
	at := -1
	for i, t := range all {
		if !t.greeting && t.Total > 0 && (at < 0 || t.Total > all[at].Total) {
			at = i
		}
	}
	if at >= 0 {
		all[at].Slowest = true
	}
}

// width is the width of a drawing in its own units.
const width = 1000.0

// milliseconds formats a duration in milliseconds.
func milliseconds(texts Texts, ms float64) string {
	return texts.T("chart.milliseconds", "milliseconds", int(math.Round(ms)))
}

// describe returns a turn in words.
func describe(texts Texts, t Turn) string {
	text := texts.T("chart.turn.silent", "turn", t.Number)
	if t.Total > 0 {
		text = texts.T("chart.turn.answered", "turn", t.Number, "time", milliseconds(texts, t.Total))
	}
	for _, p := range t.Parts {
		text += ", " + texts.T("chart.turn.phase", "phase", strings.ToLower(p.Label), "time", milliseconds(texts, p.MS))
	}
	if t.Disclosure > 0 {
		text += "; " + texts.T("chart.turn.disclosure", "time", t.Disclosed())
	}
	return text
}

func bar(texts Texts, t Turn, longest float64) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bar" viewBox="0 0 %.0f 12" preserveAspectRatio="none" role="img" aria-label="%s">`,
		width, template.HTMLEscapeString(describe(texts, t)))
	x := 0.0
	for _, p := range t.Parts {
		w := min(width*p.MS/longest, width-x)
		fmt.Fprintf(
			&b, `<rect class="%s" x="%.1f" y="0" width="%.1f" height="12"><title>%s</title></rect>`, p.Class, x, math.Max(w, 1),
			template.HTMLEscapeString(texts.T("chart.bar.phase", "phase", p.Label, "time", milliseconds(texts, p.MS))),
		)
		x += w
	}
	if t.Disclosure > 0 {
		hatch(&b, x, min(x+width*t.Disclosure/longest, width), texts.T("chart.bar.disclosure", "time", t.Disclosed()))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // what is no number is escaped
}

func hatch(b *strings.Builder, from, to float64, title string) {
	const step, stripe = 10.0, 4.0
	b.WriteString(`<path class="p-dis" d="`)
	for x := from; x < to; x += step {
		w := min(stripe, to-x)
		fmt.Fprintf(b, "M%.1f 0h%.1fv12h-%.1fz", x, w, w)
	}
	fmt.Fprintf(b, `"><title>%s</title></path>`, template.HTMLEscapeString(title))
}

// A Column is one column of a chart. Part of its N is drawn in another color.
type Column struct {
	Label   string // text below the column
	Title   string // description of the column for screen readers
	N, Part int
}

// Columns draws a column chart. Mark, if positive, is drawn as a line at the requested level. The class names the
// kind of columns.
func Columns(label, class string, all []Column, mark int) template.HTML {
	const width, height, floor, top = 500.0, 120.0, 100.0, 6.0
	most := max(1, mark)
	for _, c := range all {
		most = max(most, c.N)
	}
	var b strings.Builder
	fmt.Fprintf(
		&b, `<svg class="columns %s" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, class, width, height,
		template.HTMLEscapeString(label),
	)
	step := width / float64(max(1, len(all)))
	scale := (floor - top) / float64(most)
	for i, c := range all {
		x, w := float64(i)*step+step*.12, step*.76
		fmt.Fprintf(
			&b, `<g><title>%s</title><rect class="hit" x="%.1f" y="0" width="%.1f" height="%.0f"/>`,
			template.HTMLEscapeString(c.Title), float64(i)*step, step, floor,
		)
		if c.N > 0 {
			h := math.Max(float64(c.N)*scale, 1.5)
			fmt.Fprintf(&b, `<rect class="all" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x, floor-h, w, h)
		}
		if c.Part > 0 {
			h := math.Max(float64(c.Part)*scale, 1.5)
			fmt.Fprintf(&b, `<rect class="part" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x, floor-h, w, h)
		}
		if c.Label != "" {
			x, anchor := float64(i)*step+step/2, "middle"
			switch i { // at the edges, a centered label would be cut off
			case 0:
				x, anchor = 0, "start"
			case len(all) - 1:
				x, anchor = width, "end"
			}
			fmt.Fprintf(&b, `<text x="%.1f" y="115" text-anchor="%s">%s</text>`, x, anchor, template.HTMLEscapeString(c.Label))
		}
		b.WriteString("</g>")
	}
	fmt.Fprintf(&b, `<line class="floor" x1="0" x2="%.0f" y1="%.0f" y2="%.0f"/>`, width, floor, floor)
	if mark > 0 {
		y := floor - float64(mark)*scale
		fmt.Fprintf(&b, `<line class="mark" x1="0" x2="%.0f" y1="%.1f" y2="%.1f"/>`, width, y, y)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // what is no number is escaped
}

// A Stretch is one stretch of speech, in seconds from the answer of the call.
type Stretch struct {
	Agent      bool
	Start, End float64
	Line       int // transcript line that it belongs to
}

// Heights of a timeline.
const (
	laneTop    = 2
	laneHeight = 36
	agentTop   = laneTop + laneHeight + 4
	phaseTop   = agentTop + laneHeight + 4
	phases     = 10
)

// Timeline draws who spoke when: the caller above, the agent in the middle, and the phases of each response time below.
// The phases of a turn end where its answer begins, at Turn.At. A script adds the waveform to both lanes.
func Timeline(texts Texts, all []Stretch, turns []Turn, seconds float64) template.HTML {
	for _, s := range all {
		seconds = max(seconds, s.End)
	}
	seconds = max(seconds, 1)
	var b strings.Builder
	fmt.Fprintf(
		&b,
		`<svg class="lanes" viewBox="0 0 %.0f %d" preserveAspectRatio="none" data-seconds="%.3f" role="img" aria-label="%s">`,
		width, phaseTop+phases+laneTop, seconds, template.HTMLEscapeString(texts.T("chart.timeline.title")),
	)
	for _, y := range []int{laneTop, agentTop} {
		fmt.Fprintf(&b, `<rect class="lane" x="0" y="%d" width="%.0f" height="%d"/>`, y, width, laneHeight)
	}
	for _, s := range all {
		y, class := laneTop, "caller"
		if s.Agent {
			y, class = agentTop, "agent"
		}
		fmt.Fprintf(
			&b, `<rect class="%s" data-line="%d" x="%.2f" y="%d" width="%.2f" height="%d"/>`, class, s.Line,
			width*s.Start/seconds, y, math.Max(width*(s.End-s.Start)/seconds, 1), laneHeight,
		)
	}
	for _, t := range turns {
		at := t.At
		if t.Slowest && at > 0 {
			from := max(at-t.Total/1000, 0)
			fmt.Fprintf(
				&b, `<rect class="slowest" x="%.2f" y="0" width="%.2f" height="%d"><title>%s</title></rect>`,
				width*from/seconds, width*(at-from)/seconds, phaseTop+phases+laneTop,
				template.HTMLEscapeString(texts.T("chart.timeline.slowest", "time", milliseconds(texts, t.Total))),
			)
		}
		for i := len(t.Parts) - 1; i >= 0 && t.At > 0; i-- {
			p := t.Parts[i]
			at = max(at-p.MS/1000, 0)
			fmt.Fprintf(
				&b, `<rect class="%s" x="%.2f" y="%d" width="%.2f" height="%d"><title>%s</title></rect>`,
				p.Class, width*at/seconds, phaseTop, width*p.MS/1000/seconds, phases,
				template.HTMLEscapeString(texts.T("chart.timeline.phase", "turn", t.Number, "phase", p.Label, "time", milliseconds(texts, p.MS))),
			)
		}
	}
	fmt.Fprintf(&b, `<path class="wave caller" data-middle="%d"/><path class="wave agent" data-middle="%d"/>`, laneTop+laneHeight/2, agentTop+laneHeight/2)
	fmt.Fprintf(&b, `<line class="head" x1="0" x2="0" y1="0" y2="%d"/></svg>`, phaseTop+phases+laneTop)
	return template.HTML(b.String()) //nolint:gosec // what is no number is escaped
}

// Meter draws a share of a whole.
func Meter(label string, n, of int) template.HTML {
	share := 0.0
	if of > 0 {
		share = math.Min(1, float64(n)/float64(of))
	}
	return template.HTML(fmt.Sprintf( //nolint:gosec // what is no number is escaped
		`<svg class="meter" viewBox="0 0 %.0f 8" preserveAspectRatio="none" role="img" aria-label="%s"><rect class="lane" x="0" y="0" width="%.0f" height="8"/><rect class="all" x="0" y="0" width="%.1f" height="8"/></svg>`,
		width,
		template.HTMLEscapeString(label),
		width,
		width*share,
	))
}
