package campaigns

import (
	"fmt"
	"html/template"
	"time"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/progress"
)

// A stage is one step of the funnel: N, its share of Of, and the page that lists what N counts.
type stage struct {
	Label, Share, Path string
	N, Of              int
	Meter              template.HTML // draws the share
}

func funnel(texts *ui.Texts, c progress.Counters, tried, known, successful int, id string) []stage {
	calls, ended := "calls?campaign_id="+id, c.Attempts-c.InProgress
	all := []stage{
		{Label: texts.T("campaigns.link.contacts"), N: c.Contacts, Of: c.Contacts, Path: "campaigns/" + id + "/contacts"},
		{
			Label: texts.T("campaigns.funnel.dialed"), N: tried, Of: c.Contacts, Path: calls + "&outcome=dialed",
			Share: share(texts, tried, c.Contacts, texts.T("campaigns.funnel.of_contacts", "count", c.Contacts)) + ", " +
				texts.T("ui.count.calls", "count", c.Attempts),
		},
		{
			Label: texts.T("campaigns.funnel.answered"), N: c.Answered, Of: ended, Path: calls + "&outcome=answered",
			Share: share(texts, c.Answered, ended, texts.T("campaigns.funnel.of_ended_calls", "count", ended)),
		},
		{
			Label: texts.T("campaigns.funnel.success"), N: successful, Of: known, Path: calls + "&success=yes",
			Share: share(texts, successful, known, texts.T("campaigns.funnel.of_known_success", "count", known)),
		},
	}
	for i := range all {
		all[i].Meter = chart.Meter(all[i].Label, all[i].N, all[i].Of)
		if all[i].N == 0 {
			all[i].Path = ""
		}
	}
	return all
}

// share says which part of a number another one is.
func share(texts *ui.Texts, n, of int, what string) string {
	if of == 0 {
		return what
	}
	return texts.T("campaigns.funnel.share", "percent", fmt.Sprintf("%.1f", 100*float64(n)/float64(of)), "what", what)
}

// A tile is a number of contacts in a state.
type tile struct {
	N           int
	Label, Path string
}

func tiles(texts *ui.Texts, p progress.Progress, id string) []tile {
	contacts := "campaigns/" + id + "/contacts?show="
	show := func(s campaigns.State) string { return contacts + string(s) }
	return []tile{
		{p.Ready, texts.T("campaigns.contacts.state.ready"), contacts + showReady},
		{p.Holds, texts.T("campaigns.contacts.state.waiting"), contacts + showWaiting},
		{p.Counters.InProgress, texts.T("campaigns.state.in_call"), show(campaigns.InCall)},
		{p.ByState[campaigns.Awaiting], texts.T("campaigns.state.awaiting"), show(campaigns.Awaiting)},
		{p.ByState[campaigns.Done], texts.T("campaigns.state.done"), show(campaigns.Done)},
		{p.ByState[campaigns.Exhausted], texts.T("campaigns.state.exhausted"), show(campaigns.Exhausted)},
		{p.ByState[campaigns.Suppressed], texts.T("campaigns.state.suppressed"), show(campaigns.Suppressed)},
	}
}

// roundTo is the precision of a forecast.
const roundTo = 5 * time.Minute

// forecastText says when a campaign's calls end, or why that is not known. It says nothing of a campaign without
// waiting contacts.
func forecastText(texts *ui.Texts, x progress.Forecast, now time.Time, dates ui.Dates) string {
	at := x.At.Add(roundTo - 1).Truncate(roundTo)
	form := dates.WeekdayClock
	if at.Sub(now) > 6*24*time.Hour {
		form = dates.Date
	}
	pace := texts.T("campaigns.forecast.pace", "per_minute", fmt.Sprintf("%.1f", x.PerMinute))
	switch {
	case x.Missed > 0:
		return texts.T("campaigns.forecast.missed", "contacts", texts.T("ui.count.contacts", "count", x.Missed), "time", form(x.At), "pace", pace)
	case x.Later:
		return texts.T("campaigns.forecast.after", "time", form(at), "pace", pace)
	case x.Why == "":
		return texts.T("campaigns.forecast.about", "time", form(at), "pace", pace)
	}
	switch x.Why {
	case progress.NoContacts, plan.NotRunning:
		return ""
	case progress.NoPace:
		return texts.T("campaigns.forecast.unknown.no_pace")
	case progress.Stalled:
		return texts.T("campaigns.forecast.unknown.stalled")
	}
	why := texts.Label("campaigns.wait", x.Why)
	if key := "campaigns.limit." + x.Why; texts.Has(key + ".text") {
		why = texts.Label(key, "text")
	}
	return texts.T("campaigns.forecast.unknown", "reason", lower(why))
}
