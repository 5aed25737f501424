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
	State  string // CSS class: good, due, busy or bad; good and due mean that it dials or is done
	Text   string
	Action string // what the operator does next
	Next   time.Time
}

func explain(texts *ui.Texts, k campaigns.Campaign, p progress.Progress, blockers []launchcheck.Blocker) why {
	switch k.Status {
	case campaigns.Draft:
		return why{"busy", texts.T("campaigns.why.draft"), "", time.Time{}}
	case campaigns.Scheduled:
		return why{"busy", texts.T("campaigns.why.scheduled"), "", k.StartsAt}
	case campaigns.Paused:
		return why{"busy", texts.T("campaigns.why.paused"), texts.T("campaigns.why.paused.action"), time.Time{}}
	case campaigns.Canceled:
		return why{"", texts.T("campaigns.why.canceled"), "", time.Time{}}
	case campaigns.Completed:
		text := texts.T("campaigns.why.completed")
		if k.StatusReason == campaigns.EndsAtReached {
			text = texts.T("campaigns.why.completed.end_time")
		}
		return why{"good", text, "", time.Time{}}
	case campaigns.Running:
	}
	for _, b := range blockers {
		if at := "campaigns.check." + b.Code; stops(b.Code) {
			return why{"bad", texts.T("campaigns.why.blocked", "reason", texts.Label(at, "failed")), texts.Label(at, "action"), time.Time{}}
		}
	}
	return running(texts, k, p)
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

func running(texts *ui.Texts, k campaigns.Campaign, p progress.Progress) why {
	dials := texts.T("campaigns.why.pace", "calls", texts.T("ui.count.calls", "count", p.Pace.Dialed), "pace", p.Pace.CallsPerMinute)
	switch {
	case p.Ready > 0 && p.Pace.Dialed > 0:
		return why{"good", texts.T("campaigns.why.dialing", "pace", dials), "", time.Time{}}
	case p.Ready > 0 && len(p.Pace.LimitedBy) > 0:
		at := "campaigns.limit." + string(p.Pace.LimitedBy[0])
		return why{"busy", texts.T("campaigns.why.limited", "contacts", texts.T("ui.count.contacts", "count", p.Ready), "limit",
			texts.Label(at, "text")), texts.Label(at, "action"), time.Time{}}
	case p.Ready > 0:
		return why{"due", texts.T("campaigns.why.due", "contacts", texts.T("ui.count.contacts", "count", p.Ready)), "", time.Time{}}
	case p.Holds > 0:
		return waits(texts, p)
	case p.Counters.InProgress > 0:
		return why{"good", texts.T("campaigns.why.last_calls"), "", time.Time{}}
	case p.ByState[campaigns.Awaiting] > 0:
		return why{
			"busy",
			texts.T("campaigns.why.analysis", "contacts", texts.T("ui.count.contacts", "count", p.ByState[campaigns.Awaiting])),
			"",
			time.Time{},
		}
	case k.Open:
		return why{"busy", texts.T("campaigns.why.open"), texts.T("campaigns.why.open.action"), k.EndsAt}
	default:
		return why{"good", texts.T("campaigns.why.completing"), "", time.Time{}}
	}
}

// waits explains a campaign whose remaining contacts all wait: the most common reason
// and the next possible call.
func waits(texts *ui.Texts, p progress.Progress) why {
	all := counts(texts, "campaigns.wait", p.HeldReasons)
	w := why{
		"busy", texts.T("campaigns.why.waiting", "reason", all[0].Label, "contacts", texts.T("ui.count.contacts", "count", all[0].N)),
		"",
		time.Time{},
	}
	if len(all) > 1 {
		w.Text = texts.T("campaigns.why.waiting.several", "count", len(all), "reason", lower(all[0].Label), "contacts",
			texts.T("ui.count.contacts", "count", all[0].N))
	}
	switch all[0].Code {
	case plan.OutsideLaw, plan.OutsideHours, plan.LegalHoliday, plan.RetryWait, plan.NotBefore, plan.FrequencyCap:
		w.Next = p.Next
	case plan.CarrierPaused:
		w.Action = texts.T("campaigns.why.action.carrier_paused")
	case plan.RouteUnavailable:
		w.State, w.Action = "bad", texts.T("campaigns.why.action.route_unavailable")
	case plan.ProviderUnavailable:
		w.State, w.Action = "bad", texts.T("campaigns.why.action.provider_unavailable")
	case plan.TooManyFailures:
		w.State, w.Action = "bad", texts.T("campaigns.why.action.too_many_failures")
	case plan.RecordingUnavailable:
		w.State, w.Action = "bad", texts.T("campaigns.why.action.recording_unavailable")
	case plan.DatabaseFailover:
		w.State, w.Action = "bad", texts.T("campaigns.why.action.database_failover")
	case plan.ScreenStale:
		w.State, w.Action = "bad", texts.T("campaigns.why.action.screen_stale")
	}
	return w
}
