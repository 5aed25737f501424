package campaigns

import (
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dnc/screening"
	"github.com/parley-voice/parley/campaigns/launchcheck"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/overview"
)

type check struct {
	fix

	Code string
	Fits bool
	Href string // page of the fix
}

type one struct {
	service.Status

	Draft, Over   bool
	Screened      time.Time // time of the draft's do-not-call screening
	Checks        []check   // only of drafts and paused campaigns
	Blocked       int       // number of failed checks
	Passed        int       // number of passed checks
	Listed        bool      // numbers are on a do-not-call list, and no decision was made about them
	Consent       string
	Seen          ui.Field // settings of the draft, which the launch compares
	Warnings      []string
	Live          bool
	Progress      progress.Progress
	Tiles         []tile  // numbers of contacts by state
	Funnel        []stage // of campaigns that were launched
	Forecast      string
	Currency      string
	Menu          []ui.Link // actions besides the primary one
	Why           why
	Held, Left    []count
	Outcomes      []outcome
	Cost          *cost   // nil before the first call has ended
	Budget        *budget // nil if there is no budget
	Hours, Pace   template.HTML
	Dialed        int // number of attempts in Hours
	Lists         []store.ImportSummary
	History       []event
	Faulted       int // contacts that have no attempts left after a fault of Parley or a provider
	Skipped       int // contacts that were suppressed because of their location and may be screened again
	Pausable      bool
	Resumable     bool
	HoursInWords  []string
	RetriesInWord string
}

type outcome struct {
	Says  string
	N     int
	Meter template.HTML
}

// screeningAge allows a cached screening unless the page requests a new one. The page requests
// one by itself when the cached one is outdated.
func screeningAge(r *ui.Request) screening.Freshness {
	if r.Query("anew") != "" {
		return screening.Fresh
	}
	return screening.Cached
}

func (c *Campaigns) show(r *ui.Request) (ui.Page, error) {
	st, err := c.service().Get(r.Context(), r.Org(), r.ID(), screeningAge(r))
	if err != nil {
		return ui.Page{}, err
	}
	k := st.Campaign
	o := one{
		Status: st, Draft: k.Status == campaigns.Draft, Over: k.Status.IsOver(),
		Consent: consent(k.ConsentTier()), Seen: r.Seen(settings{Campaign: k}), Live: !k.Status.IsOver() && k.Status != campaigns.Draft,
		Pausable: campaigns.EffectOf(k.Status, campaigns.Pause) == campaigns.Applies, Resumable: k.Status == campaigns.Paused,
		HoursInWords: shifts(r.Words, k.WorkingHours), RetriesInWord: retryText(k),
	}
	if k.Status != campaigns.Canceled && (!o.Over || k.StatusReason == campaigns.QueueDrained) {
		o.Skipped = st.Counts.ByReason[campaigns.GeoRejected]
	}
	o.Screened = time.Unix(st.Screen.ScreenedAt, 0)
	if o.Draft || k.Status == campaigns.Paused {
		c.check(r, &o)
	}
	for _, w := range st.Warnings {
		o.Warnings = append(o.Warnings, warning(w))
	}
	if !o.Draft {
		if err = c.progress(r, &o); err != nil {
			return ui.Page{}, err
		}
	}
	const most = 20
	if o.Lists, err = c.API.Store.Imports.List(r.Context(), r.DB(), k.ID, most); err != nil {
		return ui.Page{}, err
	}
	log, err := c.API.Store.LogEntries(r.Context(), r.DB(), k.ID, most)
	if err != nil {
		return ui.Page{}, err
	}
	o.History = history(log)
	o.Menu, o.Currency = menu(k), c.Currency
	return ui.Page{
		Template: "one.html", Title: k.Name,
		Lead:   fmt.Sprintf("%s, agent %s, %d calls per minute", k.Classification, k.AgentName, k.CallsPerMinute),
		Crumbs: crumbs(), Data: o,
	}, nil
}

// menu lists the actions on a campaign that are not its primary one.
func menu(k campaigns.Campaign) []ui.Link {
	all := []ui.Link{
		{Label: "Show contacts", Path: "campaigns/" + k.ID + "/contacts", Role: operator.Viewer},
		{Label: "Show calls", Path: "calls?campaign_id=" + k.ID, Role: operator.Viewer},
	}
	if k.Status == campaigns.Draft {
		all = append(all, ui.Link{Label: "Edit settings", Path: "campaigns/" + k.ID + "/edit"})
	}
	all = append(all, ui.Link{Label: "Duplicate", Path: "campaigns/" + k.ID + "/duplicate"})
	if !k.Status.IsOver() {
		all = append(
			all,
			ui.Link{Label: "Add numbers", Path: "campaigns/" + k.ID + "/calls"},
			ui.Link{Label: "Edit budget", Path: "campaigns/" + k.ID + "/budget"},
			ui.Link{Label: "Withdraw numbers", Path: "campaigns/withdraw"},
			ui.Link{Label: "Cancel campaign", Path: "campaigns/" + k.ID + "/cancel", Danger: true},
		)
	}
	return all
}

// check lists the launch checks, failed ones first.
func (c *Campaigns) check(r *ui.Request, o *one) {
	for _, f := range fixes {
		failed := slices.ContainsFunc(o.Blockers, func(b launchcheck.Blocker) bool { return b.Code == f.Code })
		if !failed && f.Good == "" {
			continue
		}
		x := check{fix: f.fix, Code: f.Code, Fits: !failed}
		switch {
		case f.Path == "calls":
			x.Href = r.URL("campaigns/" + o.Campaign.ID + "/calls")
		case f.Path != "":
			x.Href = r.URL(f.Path)
		}
		if failed && f.Code != launchcheck.DNCMatches {
			o.Blocked++
		}
		if !failed {
			o.Passed++
		}
		o.Listed = o.Listed || failed && f.Code == launchcheck.DNCMatches
		o.Checks = append(o.Checks, x)
	}
	slices.SortStableFunc(o.Checks, func(a, b check) int {
		switch {
		case a.Fits == b.Fits:
			return 0
		case b.Fits:
			return -1
		default:
			return 1
		}
	})
}

// Ranges of charts: minutes of the pace, attempts of the hours.
const (
	paceMinutes   = 30
	hoursAttempts = 5_000
)

func (c *Campaigns) progress(r *ui.Request, o *one) error {
	k, now := o.Campaign, time.Now()
	facts, err := c.service().ProgressFacts(r.Context(), r.Org(), k.ID, true)
	if err != nil {
		return err
	}
	o.Progress = progress.Compute(facts)
	judged, successful, err := overview.Verdicts(r.Context(), r.DB(), r.Org(), k.ID, k.LaunchedAt)
	if err != nil {
		return err
	}
	o.Funnel = funnel(o.Progress.Counters, facts.Tried, judged, successful, k.ID)
	o.Forecast = forecastText(facts.Forecast(o.Progress), now, ui.DatesOf(r.Member))
	if o.Progress.Counters.Failed > 0 {
		if o.Faulted, err = c.API.Store.Contacts.CountFaulted(r.Context(), r.DB(), k.ID); err != nil {
			return err
		}
	}
	o.Why = explain(k, o.Progress, o.Blockers)
	o.Held, o.Left = counts(o.Progress.HeldReasons, held), counts(o.Progress.SuppressedReasons, suppressed)
	o.Outcomes, o.Tiles = outcomes(o.Progress.Counters), tiles(o.Progress, k.ID)
	o.Cost, o.Budget = costOf(o.Progress), budgetOf(o.Progress)
	if !o.Over {
		dials, fault := c.API.Store.Attempts.PerMinute(r.Context(), r.DB(), k.ID, paceMinutes, now)
		if fault != nil {
			return fault
		}
		o.Pace = pace(dials, k.CallsPerMinute)
	}
	hours, err := c.API.Store.Attempts.PerHour(r.Context(), r.DB(), k, hoursAttempts)
	if err != nil {
		return err
	}
	o.Hours, o.Dialed = byHour(hours)
	return nil
}

func pace(dials []int, asked int) template.HTML {
	all := make([]chart.Column, len(dials))
	for i, n := range dials {
		ago := len(dials) - 1 - i
		all[i] = chart.Column{Title: fmt.Sprintf("%d calls, %d minutes ago", n, ago), N: n}
		switch {
		case ago == 0:
			all[i].Label, all[i].Title = "now", fmt.Sprintf("%d calls in the last minute", n)
		case ago%5 == 0:
			all[i].Label = fmt.Sprintf("−%d", ago)
		}
	}
	return chart.Columns(
		fmt.Sprintf("Calls started per minute in the last %d minutes; requested: %d", len(dials), asked),
		"pace", all, asked,
	)
}

func byHour(hours []store.HourStats) (template.HTML, int) {
	all, n := make([]chart.Column, 24), 0
	for i := range all {
		all[i] = chart.Column{Title: fmt.Sprintf("%d to %d: none", i, i+1)}
		if i%3 == 0 {
			all[i].Label = fmt.Sprintf("%d:00", i)
		}
	}
	for _, h := range hours {
		if h.Hour < 0 || h.Hour > 23 {
			continue
		}
		all[h.Hour].N, all[h.Hour].Part = h.Dialed, h.Answered
		all[h.Hour].Title = fmt.Sprintf("%d to %d: %d dialed, %d answered by a person", h.Hour, h.Hour+1, h.Dialed, h.Answered)
		n += h.Dialed
	}
	return chart.Columns("Calls by local hour of the contact", "hours", all, 0), n
}

func outcomes(c progress.Counters) []outcome {
	var all []outcome
	for _, x := range []struct {
		says string
		n    int
	}{
		{"Answered by a person", c.Answered},
		{"Voicemail", c.Voicemail},
		{"Phone menu", c.IVR},
		{"No answer", c.NoAnswer},
		{"Busy", c.Busy},
		{"Declined", c.Declined},
		{"Failed", c.Failed},
		{"In progress", c.InProgress},
	} {
		if x.n > 0 {
			all = append(all, outcome{x.says, x.n, chart.Meter(fmt.Sprintf("%d of %d", x.n, c.Attempts), x.n, c.Attempts)})
		}
	}
	return all
}

func consent(tier string) string {
	if tier == "pewc" {
		return "prior express written consent to automated marketing calls"
	}
	return "prior express consent to automated calls"
}

func shifts(words *ui.Words, all []campaigns.Shift) []string {
	var out []string
	names := ui.Weekdays(words)
	for _, s := range all {
		text := ""
		for i := 0; i < len(s.Days); {
			j := i
			for j+1 < len(s.Days) && s.Days[j+1] == s.Days[j]+1 {
				j++
			}
			if text != "" {
				text += ", "
			}
			text += names[s.Days[i]]
			if j > i {
				text += "–" + names[s.Days[j]]
			}
			i = j + 1
		}
		out = append(out, text+" "+s.Start+"–"+s.End)
	}
	return out
}

func retryText(k campaigns.Campaign) string {
	switch {
	case len(k.Retry.Rules) > 0:
		return fmt.Sprintf("at most %d calls, %d rules", k.Retry.Attempts, len(k.Retry.Rules))
	case k.Retry.Attempts <= 1:
		return "none"
	default:
		return fmt.Sprintf("at most %d calls, the second after %d min", k.Retry.Attempts, k.Retry.Interval/60)
	}
}

func warning(w launchcheck.Warning) string {
	text := label(warnings, w.Code)
	switch {
	case w.Code == launchcheck.FrequencyActive && w.Daily != nil && w.Rolling7d != nil:
		text += fmt.Sprintf(" At most %s per day and %s in 7 days.", most(*w.Daily), most(*w.Rolling7d))
	case w.Count > 0:
		text += fmt.Sprintf(" (%d)", w.Count)
	case w.Unscreened > 0:
		text += fmt.Sprintf(" (%d)", w.Unscreened)
	case w.AgeDays > 0:
		text += fmt.Sprintf(" It is %d days old.", w.AgeDays)
	case w.RouteLimit > 0:
		text += fmt.Sprintf(" Its limit is %d.", w.RouteLimit)
	}
	return text
}

func most(n int) string {
	if n == 0 {
		return "any number"
	}
	return fmt.Sprint(n)
}

type event struct {
	At      time.Time
	Did, By string
}

func history(all []store.LogEntry) []event {
	out := make([]event, len(all))
	for i, e := range all {
		out[i] = event{At: e.At, Did: label(actions, e.Action), By: "by the " + string(e.Via)}
		switch {
		case e.Actor != "":
			out[i].By = "by " + e.Actor
		case e.Via == campaigns.ByAPI:
			out[i].By = "through the API"
		}
	}
	return out
}
