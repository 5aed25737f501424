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
	"github.com/parley-voice/parley/control"
)

// A stage is one step of the funnel: a number, the share of the step before, and the page of what it counts.
type stage struct {
	Says, Share, Path string
	N                 int
	Meter             template.HTML
}

func funnel(c progress.Counters, tried, judged, successful int, id string) []stage {
	calls := "calls?campaign_id=" + id
	all := []stage{
		{Says: "Contacts", N: c.Contacts, Path: "campaigns/" + id + "/contacts"},
		{
			Says: "Dialed", N: tried, Path: calls + "&outcome=dialed",
			Share: share(tried, c.Contacts, "contacts") + ", " + ui.Plural(c.Attempts, "call", "calls"),
		},
		{
			Says: "Answered by a person", N: c.Answered, Path: calls + "&outcome=answered",
			Share: share(c.Answered, c.Attempts-c.InProgress, "ended calls"),
		},
		{Says: "Success", N: successful, Path: calls + "&success=yes", Share: share(successful, judged, "calls with a verdict")},
	}
	for i := range all {
		all[i].Meter = chart.Meter(all[i].Says, min(all[i].N, c.Contacts), max(1, c.Contacts))
		if all[i].N == 0 {
			all[i].Path = ""
		}
	}
	return all
}

// share says which part of a number another one is.
func share(n, of int, what string) string {
	if of == 0 {
		return "no " + what
	}
	return fmt.Sprintf("%.1f %% of %s %s", 100*float64(n)/float64(of), ui.Count(of), what)
}

// A tile is a number of contacts in a state.
type tile struct {
	N          int
	Says, Path string
}

func tiles(p progress.Progress, id string) []tile {
	show := func(s campaigns.State) string { return "campaigns/" + id + "/contacts?show=" + string(s) }
	return []tile{
		{p.Ready, "Ready", show(campaigns.Pending)},
		{p.Holds, "Waiting", show(campaigns.Pending)},
		{p.Counters.InProgress, "In call", show(campaigns.InCall)},
		{p.ByState[campaigns.Awaiting], "In analysis", show(campaigns.Awaiting)},
		{p.ByState[campaigns.Done], "Completed", show(campaigns.Done)},
		{p.ByState[campaigns.Exhausted], "Not reached", show(campaigns.Exhausted)},
		{p.ByState[campaigns.Suppressed], "Skipped", show(campaigns.Suppressed)},
	}
}

// roundTo is the precision of a forecast.
const roundTo = 5 * time.Minute

// forecastText says when a campaign's calls end, or why that is not known. It says nothing of a campaign without
// waiting contacts.
func forecastText(x progress.Forecast, now time.Time, dates ui.Dates) string {
	at := x.At.Add(roundTo - 1).Truncate(roundTo)
	form := dates.WeekdayClock
	if at.Sub(now) > 6*24*time.Hour {
		form = dates.Date
	}
	pace := fmt.Sprintf("at the pace of the last hour of calls (%.1f per minute)", x.PerMinute)
	switch {
	case x.Missed > 0:
		return fmt.Sprintf("About %s will not be called before the end, %s, %s.", people(x.Missed), form(x.At), pace)
	case x.Later:
		return fmt.Sprintf("Expected end: after %s, %s.", form(at), pace)
	case x.Why == "":
		return fmt.Sprintf("Expected end: about %s, %s.", form(at), pace)
	}
	switch x.Why {
	case progress.NoContacts, plan.NotRunning:
		return ""
	case progress.NoPace:
		return "End not known: too few calls yet."
	case progress.Stalled:
		return "End not known: no call in the last 10 minutes."
	}
	why := held[x.Why]
	if l, ok := limits[control.Code(x.Why)]; ok {
		why = l.says
	}
	return strings.TrimSuffix("End not known: "+lower(why), ".") + "."
}
