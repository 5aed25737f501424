package chart

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Slot is one part of a time axis.
type Slot struct {
	Tick  string // text below the axis; empty for none
	Title string // what the slot shows, in words
	Href  string // page behind the slot; empty for none
}

// plotHeight is the height of the area of a plot in pixels, and tickHeight that of the ticks below it. The width is
// that of the page: coordinates are percentages.
const (
	plotHeight = 170
	tickHeight = 22
)

// A plot is a chart over time whose slots are links.
type plot struct {
	strings.Builder

	top  float64 // value at the upper end of the axis
	stop int     // slot whose link is a tab stop
}

// newPlot begins a plot. Axis formats a value of the vertical axis.
func newPlot(class, label string, slots []Slot, most float64, axis func(float64) string) *plot {
	p := &plot{top: niceTop(most)}
	for i, s := range slots {
		if s.Href != "" {
			p.stop = i
		}
	}
	fmt.Fprintf(p, `<div class="plot"><div class="axis" aria-hidden="true"><span>%s</span><span>%s</span><span>0</span></div>`,
		axis(p.top), axis(p.top/2))
	fmt.Fprintf(p, `<svg class="%s" role="group" aria-label="%s" height="%d" data-roving="">`,
		class, template.HTMLEscapeString(label), plotHeight+tickHeight)
	fmt.Fprintf(p, `<svg y="0" width="100%%" height="%d">`, plotHeight)
	for _, y := range []string{"0.5", "50%", "100%"} {
		fmt.Fprintf(p, `<line class="grid" x1="0" x2="100%%" y1="%[1]s" y2="%[1]s"/>`, y)
	}
	return p
}

// niceTop returns a round number that is not below most, and whose half is round.
func niceTop(most float64) float64 {
	if most <= 0 {
		return 2
	}
	unit := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 2, 4, 6, 10} {
		if top := n * unit; top >= most {
			return math.Max(top, 2)
		}
	}
	return 10 * unit
}

// y returns the distance of a value from the upper end, in percent.
func (p *plot) y(v float64) float64 { return 100 * (1 - v/p.top) }

// link begins the link of a slot. Only one link of a plot is a tab stop; a script moves it with the arrow keys.
func (p *plot) link(s Slot, i, n int) (end string) {
	title := template.HTMLEscapeString(s.Title)
	tag := "g"
	if s.Href == "" {
		fmt.Fprintf(p, `<g role="img" aria-label="%s">`, title)
	} else {
		stop := -1
		if i == p.stop {
			stop = 0
		}
		tag = "a"
		fmt.Fprintf(p, `<a href="%s" aria-label="%s" tabindex="%d">`, template.HTMLEscapeString(s.Href), title, stop)
	}
	step := 100 / float64(n)
	fmt.Fprintf(p, `<title>%s</title><rect class="hit" x="%.3f%%" width="%.3f%%" height="100%%"/>`, title, float64(i)*step, step)
	return "</" + tag + ">"
}

// letterWidth is the width of a letter of a tick on the narrowest plot, in percent of the plot.
const letterWidth = 2.2

// end writes the ticks and returns the plot. A tick that would cover the one before it is left out.
func (p *plot) end(slots []Slot) template.HTML {
	fmt.Fprint(p, "</svg>")
	step := 100 / float64(max(1, len(slots)))
	minor, taken := true, 0.0 // phones show every other tick
	for i, s := range slots {
		x, anchor := float64(i)*step, "start"
		width := letterWidth * float64(utf8.RuneCountInString(s.Tick)+1)
		from := x
		if x+width > 100 { // it would leave the plot
			x, anchor, from = x+step, "end", x+step-width
		}
		if s.Tick == "" || from < taken {
			continue
		}
		minor, taken = !minor, from+width
		fmt.Fprintf(p, `<text class="%s" x="%.3f%%" y="%d" text-anchor="%s">%s</text>`,
			map[bool]string{true: "minor"}[minor], x, plotHeight+16, anchor, template.HTMLEscapeString(s.Tick))
	}
	fmt.Fprint(p, "</svg></div>")
	return template.HTML(p.String()) //nolint:gosec // texts are escaped
}

// Stacks draws stacked columns. Parts[i] are the parts of slot i from bottom to top, and classes their CSS classes.
func Stacks(label string, slots []Slot, parts [][]int, classes []string) template.HTML {
	most := 0
	for _, column := range parts {
		sum := 0
		for _, n := range column {
			sum += n
		}
		most = max(most, sum)
	}
	p := newPlot("stacks", label, slots, float64(most), Short)
	step := 100 / float64(max(1, len(slots)))
	for i, s := range slots {
		end := p.link(s, i, len(slots))
		sum := 0
		for k, n := range parts[i] {
			if n == 0 {
				continue
			}
			sum += n
			fmt.Fprintf(p, `<rect class="%s" x="%.3f%%" y="%.3f%%" width="%.3f%%" height="%.3f%%"/>`, classes[k],
				(float64(i)+.1)*step, p.y(float64(sum)), .8*step, math.Max(100*float64(n)/p.top, .4))
		}
		fmt.Fprint(p, end)
	}
	return p.end(slots)
}

// A Range is the range of a slot, and false without values.
type Range struct {
	Low, High float64
	OK        bool
}

// Band draws a band from low to high values. Slots without values are gaps.
func Band(label string, slots []Slot, ranges []Range, axis func(float64) string) template.HTML {
	most := 0.0
	for _, r := range ranges {
		most = math.Max(most, r.High)
	}
	p := newPlot("band", label, slots, most, axis)
	n := float64(max(1, len(slots)))
	fmt.Fprintf(p, `<svg viewBox="0 0 %.0f 100" preserveAspectRatio="none" width="100%%" height="100%%">`, n)
	for from := 0; from < len(ranges); {
		to := from
		for to < len(ranges) && ranges[to].OK {
			to++
		}
		if to > from {
			p.stretch(ranges, from, to)
		}
		from = to + 1
	}
	fmt.Fprint(p, "</svg>")
	for i, s := range slots {
		fmt.Fprint(p, p.link(s, i, len(slots)))
	}
	return p.end(slots)
}

// stretch draws the band of the slots from from to to. A single one is as wide as its slot.
func (p *plot) stretch(ranges []Range, from, to int) {
	var low, high []string
	add := func(x float64, r Range) {
		low = append(low, fmt.Sprintf("%.2f %.2f", x, p.y(r.Low)))
		high = append(high, fmt.Sprintf("%.2f %.2f", x, p.y(r.High)))
	}
	add(float64(from)+.1, ranges[from])
	for i := from; i < to; i++ {
		add(float64(i)+.5, ranges[i])
	}
	add(float64(to)-.1, ranges[to-1])
	back := make([]string, len(low))
	for i, at := range low {
		back[len(low)-1-i] = at
	}
	fmt.Fprintf(p, `<path class="between" d="M%sL%sZ"/>`, strings.Join(high, "L"), strings.Join(back, "L"))
	for class, line := range [][]string{low, high} {
		fmt.Fprintf(p, `<path class="%s" d="M%s"/>`, [...]string{"low", "high"}[class], strings.Join(line, "L"))
	}
}

// Spark draws the course of a value without axes. Values that are not a number are gaps. It draws nothing if there is no
// course: fewer than two values, or none but 0.
func Spark(values []float64) template.HTML {
	const height = 28.0
	most, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			most, n = math.Max(most, v), n+1
		}
	}
	if n < 2 || most == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark" viewBox="0 0 %d %.0f" preserveAspectRatio="none" aria-hidden="true">`, max(1, len(values)), height)
	pen := "M"
	var line strings.Builder
	for i, v := range values {
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		y := height - 2 - (height-4)*v/most
		fmt.Fprintf(&line, "%s%.1f %.1f", pen, float64(i)+.2, y)
		if pen == "M" { // one value alone is a dash
			fmt.Fprintf(&line, "L%.1f %.1f", float64(i)+.8, y)
		}
		pen = "L"
	}
	fmt.Fprintf(&b, `<path d="%s"/></svg>`, line.String())
	return template.HTML(b.String()) //nolint:gosec // numbers alone
}

// Short formats a number of an axis.
func Short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'f', -1, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}
