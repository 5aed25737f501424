package live

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/pricing"
)

// A number leads to the calls behind it.
type number struct{ Text, Href string }

// none is an unknown number.
func none() number { return number{Text: "–"} }

// firstPlace is a character for private use. A text has it, or one of those after it, where a number with a
// link stands: the order of numbers differs between languages.
const firstPlace = '\ue000'

// place marks the place of the nth number.
func place(n rune) string { return string(firstPlace + n) }

// fill returns a text with numbers at their places.
func fill(text string, numbers ...number) (all []number) {
	from := 0
	for at, c := range text {
		if n := int(c - firstPlace); n >= 0 && n < len(numbers) {
			all = append(all, number{Text: text[from:at]}, numbers[n])
			from = at + utf8.RuneLen(c)
		}
	}
	return append(all, number{Text: text[from:]})
}

// Filters of the list of calls.
func overFilter() []string                        { return []string{"status", "ended,failed"} }
func outcomeFilter(key string) []string           { return []string{"outcome", key} }
func ofOutcome(o overview.Outcome) []string       { return outcomeFilter(o.Key()) }
func (f figures) link(filters []string) string    { return f.href(append(filters, f.filters...)) }
func percent(part float64) string                 { return strconv.FormatFloat(100*part, 'f', 1, 64) + "%" }
func share(n, of int) float64                     { return float64(n) / float64(max(1, of)) }
func minutes(s *overview.Sums) float64            { return float64(s.TalkMS) / 60_000 }
func (f figures) count(n int, to []string) number { return f.linked(n, ui.Count(n), to) }

// figures are the numbers of some calls.
type figures struct {
	*overview.Sums

	href    func(filters []string) string // list of calls with filters; nil: the calls cannot be selected
	filters []string                      // filters of all numbers
}

// linked returns a number of n calls as text.
func (f figures) linked(n int, text string, filters []string) number {
	if n == 0 || f.href == nil {
		return number{Text: text}
	}
	return number{text, f.link(filters)}
}

// All, Answered and Dialed are numbers of calls.
func (f figures) All() number { return f.count(f.Calls, overFilter()) }

func (f figures) Answered() number {
	return f.count(f.Outcomes[overview.Answered], ofOutcome(overview.Answered))
}
func (f figures) Dialed() number { return f.count(f.Sums.Dialed(), outcomeFilter("dialed")) }

// Succeeded is the number of calls that succeeded, by their analysis.
func (f figures) Succeeded() number { return f.count(f.Successful, []string{"success", "yes"}) }

// Known is the number of calls whose success is known.
func (f figures) Known() number { return f.count(f.KnownSuccess, []string{"success", "known"}) }

func (f figures) connected() int { return f.Outcomes[overview.Answered] + f.Outcomes[overview.Machine] }

// Connected is the number of calls with a conversation or a machine.
func (f figures) Connected() number { return f.count(f.connected(), outcomeFilter("connected")) }

// Priced is the number of calls with a known cost.
func (f figures) Priced() number { return f.count(f.Costed, []string{"has", "cost"}) }

// AnswerRate is the share of dialed calls that a person answered.
func (f figures) AnswerRate() number {
	if f.Sums.Dialed() == 0 {
		return none()
	}
	n := f.Outcomes[overview.Answered]
	return f.linked(n, percent(share(n, f.Sums.Dialed())), ofOutcome(overview.Answered))
}

// Success is the share of successful calls of those whose success is known.
func (f figures) Success() number {
	if f.KnownSuccess == 0 {
		return none()
	}
	return f.linked(f.Successful, percent(share(f.Successful, f.KnownSuccess)), []string{"success", "yes"})
}

func (f figures) response(part float64, filters ...string) number {
	ms, ok := f.Times.Percentile(part)
	if !ok {
		return none()
	}
	return f.linked(1, ui.Milliseconds(ms), append(filters, "has", "response_time"))
}

// P50 and P95 are response times.
func (f figures) P50() number { return f.response(.5) }

// P95 is the response time of 95% of the turns. It leads to the calls with the slowest responses.
func (f figures) P95() number { return f.response(.95, "order", "slowest") }

// Turns is the number of turns with a response time.
func (f figures) Turns() number {
	n := f.Times.Count()
	return f.linked(n, ui.Count(n), []string{"has", "response_time"})
}

// Minutes is the length of conversations.
func (f figures) Minutes() number {
	m := minutes(f.Sums)
	text := ui.Count(int(math.Round(m)))
	if m < 10 {
		text = strconv.FormatFloat(m, 'f', 1, 64)
	}
	return f.linked(int(f.TalkMS), text, outcomeFilter("connected"))
}

// Cost is the sum of the known costs.
func (f figures) Cost() number {
	if f.Costed == 0 {
		return none()
	}
	return f.linked(f.Costed, ui.Amount(pricing.Amount(f.CostNano).Units()), []string{"has", "cost"})
}

// ByOutcome are the numbers of calls by outcome.
func (f figures) ByOutcome() (all []number) {
	for o := range overview.Outcomes {
		all = append(all, f.count(f.Outcomes[o], ofOutcome(o)))
	}
	return all
}

// A change compares a number with that of the period before.
type change struct {
	Text, Class string // class good, bad or none
}

// relative is the change of an amount. Better is 1 if more is better, -1 if less is, and 0 otherwise.
func relative(texts *ui.Texts, now, before float64, better int) change {
	if before == 0 || math.IsNaN(now) || math.IsNaN(before) {
		return change{}
	}
	return changeOf(texts, "live.overview.change.percent", 100*(now-before)/before, better)
}

// points is the change of a share, in percentage points.
func points(texts *ui.Texts, now, before float64, better int) change {
	if math.IsNaN(now) || math.IsNaN(before) {
		return change{}
	}
	return changeOf(texts, "live.overview.change.points", 100*(now-before), better)
}

// changeOf describes a change by the text with this key.
func changeOf(texts *ui.Texts, key string, by float64, better int) change {
	form := "%+.1f"
	if math.Abs(by) >= 100 {
		form = "%+.0f"
	}
	c := change{Text: texts.T(key, "change", strings.Replace(fmt.Sprintf(form, by), "-", "−", 1))}
	switch {
	case math.Abs(by) < .05:
		c.Text = texts.T("live.overview.change.none")
	case by*float64(better) > 0:
		c.Class = "good"
	case by*float64(better) < 0:
		c.Class = "bad"
	}
	return c
}
