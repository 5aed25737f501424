package campaigns

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/progress"
)

// A stage is one step of the funnel: a number, the share of the step before, and the page of what it counts.
type stage struct {
	Label, Share, Path string
	N                  int
	Meter              template.HTML
}

func funnel(words *ui.Words, c progress.Counters, tried, judged, successful int, id string) []stage {
	calls, ended := "calls?campaign_id="+id, c.Attempts-c.InProgress
	all := []stage{
		{Label: words.T("campaigns.link.contacts"), N: c.Contacts, Path: "campaigns/" + id + "/contacts"},
		{
			Label: words.T("campaigns.funnel.dialed"), N: tried, Path: calls + "&outcome=dialed",
			Share: share(words, tried, c.Contacts, words.T("campaigns.funnel.of_contacts", "count", c.Contacts)) + ", " +
				words.T("ui.count.calls", "count", c.Attempts),
		},
		{
			Label: words.T("campaigns.funnel.answered"), N: c.Answered, Path: calls + "&outcome=answered",
			Share: share(words, c.Answered, ended, words.T("campaigns.funnel.of_ended_calls", "count", ended)),
		},
		{
			Label: words.T("campaigns.funnel.success"), N: successful, Path: calls + "&success=yes",
			Share: share(words, successful, judged, words.T("campaigns.funnel.of_verdicts", "count", judged)),
		},
	}
	for i := range all {
		all[i].Meter = chart.Meter(all[i].Label, min(all[i].N, c.Contacts), max(1, c.Contacts))
		if all[i].N == 0 {
			all[i].Path = ""
		}
	}
	return all
}

// share says which part of a number another one is.
func share(words *ui.Words, n, of int, what string) string {
	if of == 0 {
		return what
	}
	return words.T("campaigns.funnel.share", "percent", fmt.Sprintf("%.1f", 100*float64(n)/float64(of)), "what", what)
}

// A tile is a number of contacts in a state.
type tile struct {
	N           int
	Label, Path string
}

func tiles(words *ui.Words, p progress.Progress, id string) []tile {
	contacts := "campaigns/" + id + "/contacts?show="
	show := func(s campaigns.State) string { return contacts + string(s) }
	return []tile{
		{p.Ready, words.T("campaigns.contacts.state.ready"), contacts + showReady},
		{p.Holds, words.T("campaigns.contacts.state.waiting"), contacts + showWaiting},
		{p.Counters.InProgress, words.T("campaigns.state.in_call"), show(campaigns.InCall)},
		{p.ByState[campaigns.Awaiting], words.T("campaigns.state.awaiting"), show(campaigns.Awaiting)},
		{p.ByState[campaigns.Done], words.T("campaigns.state.done"), show(campaigns.Done)},
		{p.ByState[campaigns.Exhausted], words.T("campaigns.state.exhausted"), show(campaigns.Exhausted)},
		{p.ByState[campaigns.Suppressed], words.T("campaigns.state.suppressed"), show(campaigns.Suppressed)},
	}
}

// roundTo is the precision of a forecast.
const roundTo = 5 * time.Minute

// forecastText says when a campaign's calls end, or why that is not known. It says nothing of a campaign without
// waiting contacts.
func forecastText(words *ui.Words, x progress.Forecast, now time.Time, dates ui.Dates) string {
	at := x.At.Add(roundTo - 1).Truncate(roundTo)
	form := dates.WeekdayClock
	if at.Sub(now) > 6*24*time.Hour {
		form = dates.Date
	}
	pace := words.T("campaigns.forecast.pace", "per_minute", fmt.Sprintf("%.1f", x.PerMinute))
	switch {
	case x.Missed > 0:
		return words.T("campaigns.forecast.missed", "contacts", words.T("ui.count.contacts", "count", x.Missed), "time", form(x.At), "pace", pace)
	case x.Later:
		return words.T("campaigns.forecast.after", "time", form(at), "pace", pace)
	case x.Why == "":
		return words.T("campaigns.forecast.about", "time", form(at), "pace", pace)
	}
	switch x.Why {
	case progress.NoContacts, plan.NotRunning:
		return ""
	case progress.NoPace:
		return words.T("campaigns.forecast.unknown.no_pace")
	case progress.Stalled:
		return words.T("campaigns.forecast.unknown.stalled")
	}
	why := words.Label("campaigns.wait", x.Why)
	if key := "campaigns.limit." + x.Why; words.Has(key + ".text") {
		why = words.Label(key, "text")
	}
	return strings.TrimSuffix(words.T("campaigns.forecast.unknown", "reason", lower(why)), ".") + "."
}
