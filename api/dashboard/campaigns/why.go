package campaigns

import (
	"fmt"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/control"
)

// A why explains whether a campaign dials.
type why struct {
	State string // CSS class: good, due, busy or bad; good and due mean that it dials
	Says  string
	More  string // next action of the operator
	Next  time.Time
}

func explain(k campaigns.Campaign, p progress.Progress, blockers []launchcheck.Blocker) why {
	switch k.Status {
	case campaigns.Draft:
		return why{"busy", "Draft. No calls are placed until you launch it.", "", time.Time{}}
	case campaigns.Scheduled:
		return why{"busy", "Launched; waiting for the scheduled start.", "", k.StartsAt}
	case campaigns.Paused:
		return why{"busy", "Paused: no new calls. Active calls continue.", "Resume to continue.", time.Time{}}
	case campaigns.Canceled:
		return why{"", "Canceled. No one else will be called.", "", time.Time{}}
	case campaigns.Completed:
		text := "Completed: all contacts are done."
		if k.StatusReason == campaigns.EndsAtReached {
			text = "Completed: the end time was reached."
		}
		return why{"good", text, "", time.Time{}}
	case campaigns.Running:
	}
	for _, b := range blockers {
		if f, ok := stoppingFix(b.Code); ok {
			return why{"bad", f.Bad + ". Calls are on hold.", f.Do, time.Time{}}
		}
	}
	return running(k, p)
}

// stoppingFix returns the fix of a blocker that stops a running campaign.
func stoppingFix(code string) (fix, bool) {
	switch code {
	case launchcheck.AgentNotPublished,
		launchcheck.ProviderNotConfigured,
		launchcheck.ProviderMisconfigured,
		launchcheck.AgentNotAttached,
		launchcheck.RouteUnavailable,
		launchcheck.CallerNumberUnavailable,
		launchcheck.MarketNotInstalled,
		launchcheck.HoursNeverOpen:
	default:
		return fix{}, false
	}
	for _, f := range fixes {
		if f.Code == code {
			return f.fix, true
		}
	}
	return fix{}, false
}

func running(k campaigns.Campaign, p progress.Progress) why {
	dials := fmt.Sprintf("%s in the last minute; requested pace %d.", calls(p.Pace.Dialed), p.Pace.CallsPerMinute)
	switch {
	case p.Ready > 0 && p.Pace.Dialed > 0:
		return why{"good", "Dialing: " + dials, "", time.Time{}}
	case p.Ready > 0 && len(p.Pace.LimitedBy) > 0:
		l := limits[p.Pace.LimitedBy[0]]
		return why{"busy", fmt.Sprintf("%s ready, none being dialed: %s.", people(p.Ready), l.says), l.do, time.Time{}}
	case p.Ready > 0:
		return why{"due", fmt.Sprintf("%s ready. No calls in the last minute; the next call is due.", people(p.Ready)), "", time.Time{}}
	case p.Holds > 0:
		return waits(p)
	case p.Counters.InProgress > 0:
		return why{"good", "The last calls are in progress. No contacts are waiting.", "", time.Time{}}
	case p.ByState[campaigns.Awaiting] > 0:
		return why{
			"busy",
			fmt.Sprintf("Waiting for the analysis of %s; it decides about further calls.", people(p.ByState[campaigns.Awaiting])),
			"",
			time.Time{},
		}
	case k.Open:
		return why{"busy", "All contacts were called. Waiting for more numbers until the end.", "Add numbers or cancel the campaign.", k.EndsAt}
	default:
		return why{"busy", "All contacts were called. The campaign completes shortly.", "", time.Time{}}
	}
}

// limits are the limits that stop ready contacts from being called.
var limits = map[control.Code]struct{ says, do string }{ //nolint:gochecknoglobals // read-only table
	control.CodeSubgroupConcurrency: {"all channels of its subgroup are in use", "See Live. The next call starts when one is free."},
	control.CodeSubgroupRate:        {"its subgroup reached its calls per minute", "See Live. The next call starts when the limit allows."},
	control.CodeCampaignBudget:      {"the budget allows no further call", "Raise the budget to continue."},
	control.CodeOrganizationBudget:  {"the organization reached its monthly cost limit", "An owner can raise the limit in Settings."},
	control.CodeOrganizationLimit: {
		"the organization reached its daily limit of calls, minutes or cost", "An owner can raise the limit in Settings.",
	},
}

// waits explains a campaign whose remaining contacts all wait: the most common reason
// and the next possible call.
func waits(p progress.Progress) why {
	all := counts(p.HeldReasons, held)
	w := why{"busy", fmt.Sprintf("Waiting: no contact can be called now. %s: %s.", all[0].Says, people(all[0].N)), "", time.Time{}}
	if len(all) > 1 {
		w.Says = fmt.Sprintf(
			"Waiting: no contact can be called now, for %d reasons. Most common: %s, %s.", len(all),
			lower(all[0].Says), people(all[0].N),
		)
	}
	switch all[0].Code {
	case plan.OutsideLaw, plan.OutsideHours, plan.LegalHoliday, plan.RetryWait, plan.NotBefore, plan.FrequencyCap:
		w.Next = p.Next
	case plan.CarrierPaused:
		w.More = "Calls continue when the pause ends."
	case plan.RouteUnavailable:
		w.State, w.More = "bad", "See the trunk under Live. Parley retries automatically."
	case plan.ProviderUnavailable:
		w.State, w.More = "bad", "Parley probes speech-to-text, model and voice every few seconds. Calls continue when they respond."
	case plan.TooManyFailures:
		w.State, w.More = "bad", "See the failed calls. Parley tries one call at a time; the campaign continues when one succeeds."
	case plan.RecordingUnavailable:
		w.State, w.More = "bad", "Free disk space on the server, or lower PARLEY_RECORDING_RESERVE."
	case plan.DatabaseFailover:
		w.State, w.More = "bad", "Start the servers that parley failover status names, or run parley failover release."
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
