package campaigns

import (
	"time"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/progress"
)

// A why explains whether a campaign dials.
type why struct {
	State  string // CSS class: good, due, busy or bad; good and due mean that it dials
	Text   string
	Action string // what the operator does next
	Next   time.Time
}

func explain(words *ui.Words, k campaigns.Campaign, p progress.Progress, blockers []launchcheck.Blocker) why {
	switch k.Status {
	case campaigns.Draft:
		return why{"busy", words.T("campaigns.why.draft"), "", time.Time{}}
	case campaigns.Scheduled:
		return why{"busy", words.T("campaigns.why.scheduled"), "", k.StartsAt}
	case campaigns.Paused:
		return why{"busy", words.T("campaigns.why.paused"), words.T("campaigns.why.paused.action"), time.Time{}}
	case campaigns.Canceled:
		return why{"", words.T("campaigns.why.canceled"), "", time.Time{}}
	case campaigns.Completed:
		text := words.T("campaigns.why.completed")
		if k.StatusReason == campaigns.EndsAtReached {
			text = words.T("campaigns.why.completed.end_time")
		}
		return why{"good", text, "", time.Time{}}
	case campaigns.Running:
	}
	for _, b := range blockers {
		if at := "campaigns.check." + b.Code; stops(b.Code) {
			return why{"bad", words.T("campaigns.why.blocked", "reason", words.Label(at, "failed")), words.Label(at, "action"), time.Time{}}
		}
	}
	return running(words, k, p)
}

// stops reports whether a blocker stops a running campaign.
func stops(code string) bool {
	switch code {
	case launchcheck.AgentNotPublished,
		launchcheck.ProviderNotConfigured,
		launchcheck.ProviderMisconfigured,
		launchcheck.AgentNotAttached,
		launchcheck.RouteUnavailable,
		launchcheck.CallerNumberUnavailable,
		launchcheck.MarketNotInstalled,
		launchcheck.HoursNeverOpen:
		return true
	default:
		return false
	}
}

func running(words *ui.Words, k campaigns.Campaign, p progress.Progress) why {
	dials := words.T("campaigns.why.pace", "calls", words.T("ui.count.calls", "count", p.Pace.Dialed), "pace", p.Pace.CallsPerMinute)
	switch {
	case p.Ready > 0 && p.Pace.Dialed > 0:
		return why{"good", words.T("campaigns.why.dialing", "pace", dials), "", time.Time{}}
	case p.Ready > 0 && len(p.Pace.LimitedBy) > 0:
		at := "campaigns.limit." + string(p.Pace.LimitedBy[0])
		return why{"busy", words.T("campaigns.why.limited", "contacts", words.T("ui.count.contacts", "count", p.Ready), "limit",
			words.Label(at, "text")), words.Label(at, "action"), time.Time{}}
	case p.Ready > 0:
		return why{"due", words.T("campaigns.why.due", "contacts", words.T("ui.count.contacts", "count", p.Ready)), "", time.Time{}}
	case p.Holds > 0:
		return waits(words, p)
	case p.Counters.InProgress > 0:
		return why{"good", words.T("campaigns.why.last_calls"), "", time.Time{}}
	case p.ByState[campaigns.Awaiting] > 0:
		return why{
			"busy",
			words.T("campaigns.why.analysis", "contacts", words.T("ui.count.contacts", "count", p.ByState[campaigns.Awaiting])),
			"",
			time.Time{},
		}
	case k.Open:
		return why{"busy", words.T("campaigns.why.open"), words.T("campaigns.why.open.action"), k.EndsAt}
	default:
		return why{"busy", words.T("campaigns.why.completing"), "", time.Time{}}
	}
}

// waits explains a campaign whose remaining contacts all wait: the most common reason
// and the next possible call.
func waits(words *ui.Words, p progress.Progress) why {
	all := counts(words, "campaigns.wait", p.HeldReasons)
	w := why{
		"busy", words.T("campaigns.why.waiting", "reason", all[0].Label, "contacts", words.T("ui.count.contacts", "count", all[0].N)),
		"",
		time.Time{},
	}
	if len(all) > 1 {
		w.Text = words.T("campaigns.why.waiting.several", "count", len(all), "reason", lower(all[0].Label), "contacts",
			words.T("ui.count.contacts", "count", all[0].N))
	}
	switch all[0].Code {
	case plan.OutsideLaw, plan.OutsideHours, plan.LegalHoliday, plan.RetryWait, plan.NotBefore, plan.FrequencyCap:
		w.Next = p.Next
	case plan.CarrierPaused:
		w.Action = words.T("campaigns.why.action.carrier_paused")
	case plan.RouteUnavailable:
		w.State, w.Action = "bad", words.T("campaigns.why.action.route_unavailable")
	case plan.ProviderUnavailable:
		w.State, w.Action = "bad", words.T("campaigns.why.action.provider_unavailable")
	case plan.TooManyFailures:
		w.State, w.Action = "bad", words.T("campaigns.why.action.too_many_failures")
	case plan.RecordingUnavailable:
		w.State, w.Action = "bad", words.T("campaigns.why.action.recording_unavailable")
	case plan.DatabaseFailover:
		w.State, w.Action = "bad", words.T("campaigns.why.action.database_failover")
	case plan.ScreenStale:
		w.State, w.Action = "bad", words.T("campaigns.why.action.screen_stale")
	}
	return w
}
