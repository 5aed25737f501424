package campaigns

import (
	"fmt"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control"
)

// A why answers why a campaign dials, or does not.
type why struct {
	State string // good, due, busy or bad: how it is drawn; by the first two it dials
	Says  string
	More  string // what one may do, or wait for
	Next  time.Time
}

// explain answers from what is known of a campaign.
func explain(k campaigns.Campaign, p progress.Progress, blockers []checks.Blocker) why {
	switch k.Status {
	case campaigns.Draft:
		return why{"busy", "It is a draft: nothing is dialled before it is launched.", "", time.Time{}}
	case campaigns.Scheduled:
		return why{"busy", "It is launched, and begins at its start.", "", k.StartsAt}
	case campaigns.Paused:
		return why{"busy", "It is paused: nobody new is called. Calls that are on go on.", "Resume it to go on.", time.Time{}}
	case campaigns.Cancelled:
		return why{"", "It was cancelled. Nobody is called any more.", "", time.Time{}}
	case campaigns.Completed:
		text := "It is over: nobody is left to be called."
		if k.StatusReason == campaigns.EndsAtCame {
			text = "It is over: its end came."
		}
		return why{"good", text, "", time.Time{}}
	case campaigns.Running:
	}
	for _, b := range blockers {
		if f, ok := lost(b.Code); ok {
			return why{"bad", f.Bad + ", so nobody is called.", f.Do, time.Time{}}
		}
	}
	return running(k, p)
}

// lost is the fix of what keeps a running campaign from dialling.
func lost(code string) (fix, bool) {
	switch code {
	case checks.AgentNotPublished, checks.AgentNotAttached, checks.RouteUnavailable, checks.CallerNumberUnavailable, checks.MarketNotInstalled, checks.HoursNeverOpen:
	default:
		return fix{}, false
	}
	for _, f := range fixes() {
		if f.Code == code {
			return f.fix, true
		}
	}
	return fix{}, false
}

func running(k campaigns.Campaign, p progress.Progress) why {
	dials := fmt.Sprintf("%s in the last minute, of %d that were asked for.", calls(p.Pace.Dialled), p.Pace.CallsPerMinute)
	switch {
	case p.Ready > 0 && p.Pace.Dialled > 0:
		return why{"good", "It is dialling: " + dials, "", time.Time{}}
	case p.Ready > 0 && len(p.Pace.LimitedBy) > 0:
		l := limits[p.Pace.LimitedBy[0]]
		return why{"busy", fmt.Sprintf("%s may be called now, and none is: %s.", people(p.Ready), l.says), l.do, time.Time{}}
	case p.Ready > 0:
		return why{"due", fmt.Sprintf("%s may be called now. None was called in the last minute; the next call is due.", people(p.Ready)), "", time.Time{}}
	case p.Holds > 0:
		return waits(p)
	case p.Counters.InProgress > 0:
		return why{"good", "The last calls are on. Nobody else waits.", "", time.Time{}}
	case p.ByState[campaigns.Awaiting] > 0:
		return why{"busy", fmt.Sprintf("%s were talked to; the analysis of their calls decides whether they are called again.", people(p.ByState[campaigns.Awaiting])), "", time.Time{}}
	case k.Open:
		return why{"busy", "Everybody was called. It waits for more numbers until its end.", "Add numbers, or cancel it.", k.EndsAt}
	default:
		return why{"busy", "Everybody was called. It will be over in a moment.", "", time.Time{}}
	}
}

// limits are what keeps contacts from being called that may be, and what one may do.
var limits = map[control.Code]struct{ says, do string }{ //nolint:gochecknoglobals // read-only table
	control.CodeSubgroupConcurrency: {"all lines of its subgroup are in use", "See Live. The next call is made as soon as one is free."},
	control.CodeSubgroupRate:        {"its subgroup begins as many calls a minute as it may", "See Live. The next call is made as soon as it may be."},
	control.CodeOrganizationLimit:   {"the organization has come to what a day may come to", "See Settings, where an owner may raise it."},
}

// waits explains a campaign in which everybody who is left waits: by the reason that
// most of them wait for, and the next instant at which that may change.
func waits(p progress.Progress) why {
	all := counts(p.HeldReasons, held)
	w := why{"busy", fmt.Sprintf("It waits: nobody may be called now. %s: %s.", all[0].Says, people(all[0].N)), "", time.Time{}}
	if len(all) > 1 {
		w.Says = fmt.Sprintf("It waits: nobody may be called now, for %d reasons. The first: %s, %s.", len(all), lower(all[0].Says), people(all[0].N))
	}
	switch all[0].Code {
	case plan.OutsideLaw, plan.OutsideHours, plan.LegalHoliday, plan.RetryWait, plan.NotBefore, plan.FrequencyCap:
		w.Next = p.Until[all[0].Code]
	case plan.RouteUnavailable:
		w.State, w.More = "bad", "See the line under Live. It is tried again by itself."
	case plan.ScreenStale:
		w.State, w.More = "bad", "Load a new copy of the registry."
	}
	return w
}

func lower(s string) string { return string(s[0]|0x20) + s[1:] }

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

func people(n int) string {
	if n == 1 {
		return "1 contact"
	}
	return fmt.Sprintf("%d contacts", n)
}
