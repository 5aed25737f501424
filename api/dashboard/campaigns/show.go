package campaigns

import (
	"cmp"
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
	Imports       []store.ImportSummary
	History       []event
	Faulted       int // contacts that have no attempts left after a fault of Parley or a provider
	Skipped       int // contacts that were suppressed because of their location and may be screened again
	Pausable      bool
	Resumable     bool
	HoursInWords  []string
	RetriesInWord string
}

type outcome struct {
	Label string
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
		Consent: consent(r.Texts, k.ConsentTier()), Seen: r.Seen(draftSettings{Campaign: k}), Live: !k.Status.IsOver() &&
			k.Status != campaigns.Draft,
		Pausable: campaigns.EffectOf(k.Status, campaigns.Pause) == campaigns.Applies, Resumable: k.Status == campaigns.Paused,
		HoursInWords: shifts(r.Texts, k.WorkingHours, ui.DatesOf(r.Member)), RetriesInWord: retryText(r.Texts, k),
	}
	if k.Status != campaigns.Canceled && (!o.Over || k.StatusReason == campaigns.QueueDrained) {
		o.Skipped = st.Counts.ByReason[campaigns.GeoRejected]
	}
	o.Screened = time.Unix(st.Screen.ScreenedAt, 0)
	if o.Draft || k.Status == campaigns.Paused {
		c.check(r, &o)
	}
	for _, w := range st.Warnings {
		o.Warnings = append(o.Warnings, warning(r.Texts, w))
	}
	if !o.Draft {
		if err = c.progress(r, &o); err != nil {
			return ui.Page{}, err
		}
	}
	const most = 20
	if o.Imports, err = c.API.Store.Imports.List(r.Context(), r.DB(), k.ID, most); err != nil {
		return ui.Page{}, err
	}
	log, err := c.API.Store.LogEntries(r.Context(), r.DB(), k.ID, most)
	if err != nil {
		return ui.Page{}, err
	}
	o.History = history(r.Texts, log)
	o.Menu, o.Currency = menu(r.Texts, k), c.Currency
	purpose := r.Texts.Label("campaigns.draft.option", string(k.Classification))
	return ui.Page{
		Template: "one.html", Title: k.Name,
		Lead:   r.Texts.T("campaigns.show.lead", "purpose", purpose, "agent", k.AgentName, "pace", k.CallsPerMinute),
		Crumbs: crumbs(r.Texts), Data: o,
	}, nil
}

// menu lists the actions on a campaign that are not its primary one.
func menu(texts *ui.Texts, k campaigns.Campaign) []ui.Link {
	all := []ui.Link{
		{Label: texts.T("campaigns.link.show_contacts"), Path: "campaigns/" + k.ID + "/contacts", Role: operator.Viewer},
		{Label: texts.T("campaigns.link.show_calls"), Path: "calls?campaign_id=" + k.ID, Role: operator.Viewer},
	}
	if k.Status == campaigns.Draft {
		all = append(all, ui.Link{Label: texts.T("campaigns.link.edit_settings"), Path: "campaigns/" + k.ID + "/edit"})
	}
	all = append(all, ui.Link{Label: texts.T("campaigns.link.duplicate"), Path: "campaigns/" + k.ID + "/duplicate"})
	if !k.Status.IsOver() {
		all = append(
			all,
			ui.Link{Label: texts.T("campaigns.link.add_contacts"), Path: "campaigns/" + k.ID + "/calls"},
			ui.Link{Label: texts.T("campaigns.link.edit_budget"), Path: "campaigns/" + k.ID + "/budget"},
			ui.Link{Label: texts.T("campaigns.link.withdraw_numbers"), Path: "campaigns/withdraw"},
			ui.Link{Label: texts.T("campaigns.link.cancel_campaign"), Path: "campaigns/" + k.ID + "/cancel", Danger: true},
		)
	}
	return all
}

// check lists the launch checks, failed ones first.
func (c *Campaigns) check(r *ui.Request, o *one) {
	for _, x := range launchChecks(r.Texts) {
		failed := slices.ContainsFunc(o.Blockers, func(b launchcheck.Blocker) bool { return b.Code == x.Code })
		if !failed && x.Passed == "" {
			continue
		}
		x.Fits = !failed
		if x.Path != "" {
			x.Href = r.URL(x.path(o.Campaign))
		}
		x.Asks = failed && x.Code == launchcheck.DNCMatches
		if failed && !x.Asks {
			o.Blocked++
		}
		if !failed {
			o.Passed++
		}
		o.Listed = o.Listed || x.Asks
		o.Checks = append(o.Checks, x)
	}
	slices.SortStableFunc(o.Checks, func(a, b check) int { return cmp.Compare(a.rank(), b.rank()) })
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
	known, successful, err := overview.Success(r.Context(), r.DB(), r.Org(), k.ID, k.LaunchedAt)
	if err != nil {
		return err
	}
	o.Funnel = funnel(r.Texts, o.Progress.Counters, facts.Tried, known, successful, k.ID)
	o.Forecast = forecastText(r.Texts, facts.Forecast(o.Progress), now, ui.DatesOf(r.Member))
	if o.Progress.Counters.Failed > 0 {
		if o.Faulted, err = c.API.Store.Contacts.CountFaulted(r.Context(), r.DB(), k.ID); err != nil {
			return err
		}
	}
	o.Why = explain(r.Texts, k, o.Progress, o.Blockers)
	o.Held, o.Left = counts(r.Texts, "campaigns.wait", o.Progress.HeldReasons), counts(r.Texts, "campaigns.skip", o.Progress.SuppressedReasons)
	o.Outcomes, o.Tiles = outcomes(r.Texts, o.Progress.Counters), tiles(r.Texts, o.Progress, k.ID)
	o.Cost, o.Budget = costOf(o.Progress), budgetOf(r.Texts, o.Progress)
	if !o.Over {
		dials, fault := c.API.Store.Attempts.PerMinute(r.Context(), r.DB(), k.ID, paceMinutes, now)
		if fault != nil {
			return fault
		}
		o.Pace = pace(r.Texts, dials, k.CallsPerMinute)
	}
	hours, err := c.API.Store.Attempts.PerHour(r.Context(), r.DB(), k, hoursAttempts)
	if err != nil {
		return err
	}
	o.Hours, o.Dialed = byHour(r.Texts, hours, ui.DatesOf(r.Member))
	return nil
}

func pace(texts *ui.Texts, dials []int, asked int) template.HTML {
	all := make([]chart.Column, len(dials))
	for i, n := range dials {
		ago := len(dials) - 1 - i
		all[i] = chart.Column{Title: texts.T("campaigns.pace.minute", "count", n, "minutes", ago), N: n}
		switch {
		case ago == 0:
			all[i].Label, all[i].Title = "now", texts.T("campaigns.pace.last_minute", "count", n)
		case ago%5 == 0:
			all[i].Label = fmt.Sprintf("−%d", ago)
		}
	}
	return chart.Columns(
		texts.T("campaigns.pace.title", "minutes", len(dials), "pace", asked),
		"pace", all, asked,
	)
}

func byHour(texts *ui.Texts, hours []store.HourStats, dates ui.Dates) (template.HTML, int) {
	all, n := make([]chart.Column, 24), 0
	for i := range all {
		all[i] = chart.Column{Title: texts.T("campaigns.hours.none", "from", dates.Hour(i), "to", dates.Hour(i+1))}
		if i%3 == 0 {
			all[i].Label = dates.Hour(i)
		}
	}
	for _, h := range hours {
		if h.Hour < 0 || h.Hour > 23 {
			continue
		}
		all[h.Hour].N, all[h.Hour].Part = h.Dialed, h.Answered
		all[h.Hour].Title = texts.T("campaigns.hours.some", "from", dates.Hour(h.Hour), "to", dates.Hour(h.Hour+1),
			"dialed", h.Dialed, "answered", h.Answered)
		n += h.Dialed
	}
	return chart.Columns(texts.T("campaigns.hours.title"), "hours", all, 0), n
}

func outcomes(texts *ui.Texts, c progress.Counters) []outcome {
	var all []outcome
	for _, x := range []struct {
		label string
		n     int
	}{
		{texts.T("campaigns.outcome.answered"), c.Answered},
		{texts.T("campaigns.outcome.voicemail"), c.Voicemail},
		{texts.T("campaigns.outcome.ivr"), c.IVR},
		{texts.T("campaigns.outcome.no_answer"), c.NoAnswer},
		{texts.T("campaigns.outcome.busy"), c.Busy},
		{texts.T("campaigns.outcome.declined"), c.Declined},
		{texts.T("campaigns.outcome.failed"), c.Failed},
		{texts.T("campaigns.outcome.in_progress"), c.InProgress},
	} {
		if x.n > 0 {
			all = append(all, outcome{
				x.label, x.n,
				chart.Meter(texts.T("campaigns.outcome.share", "count", x.n, "total", c.Attempts), x.n, c.Attempts),
			})
		}
	}
	return all
}

func consent(texts *ui.Texts, tier string) string {
	if tier == "pewc" {
		return texts.T("campaigns.consent.written")
	}
	return texts.T("campaigns.consent.express")
}

func shifts(texts *ui.Texts, all []campaigns.Shift, dates ui.Dates) []string {
	var out []string
	names := ui.Weekdays(texts)
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
		out = append(out, text+" "+dates.TimeOfDay(s.Start)+"–"+dates.TimeOfDay(s.End))
	}
	return out
}

func retryText(texts *ui.Texts, k campaigns.Campaign) string {
	switch {
	case len(k.Retry.Rules) > 0:
		return texts.T("campaigns.retries.rules", "attempts", k.Retry.Attempts, "rules", len(k.Retry.Rules))
	case k.Retry.Attempts <= 1:
		return texts.T("campaigns.retries.none")
	default:
		return texts.T("campaigns.retries.interval", "attempts", k.Retry.Attempts, "minutes", k.Retry.Interval/60)
	}
}

func warning(texts *ui.Texts, w launchcheck.Warning) string {
	text := texts.Label("campaigns.warning", w.Code)
	switch {
	case w.Code == launchcheck.FrequencyActive && w.Daily != nil && w.Rolling7d != nil:
		text += " " + texts.T("campaigns.warning.detail.caps", "day", most(texts, *w.Daily), "week", most(texts, *w.Rolling7d))
	case w.Count > 0:
		text += fmt.Sprintf(" (%d)", w.Count)
	case w.Unscreened > 0:
		text += fmt.Sprintf(" (%d)", w.Unscreened)
	case w.AgeDays > 0:
		text += " " + texts.T("campaigns.warning.detail.age", "days", w.AgeDays)
	case w.RouteLimit > 0:
		text += " " + texts.T("campaigns.warning.detail.limit", "limit", w.RouteLimit)
	}
	return text
}

func most(texts *ui.Texts, n int) string {
	if n == 0 {
		return texts.T("campaigns.warning.detail.any_number")
	}
	return fmt.Sprint(n)
}

type event struct {
	At            time.Time
	Action, Actor string
}

func history(texts *ui.Texts, all []store.LogEntry) []event {
	out := make([]event, len(all))
	for i, e := range all {
		out[i] = event{
			At: e.At, Action: texts.Label("campaigns.log", e.Action),
			Actor: texts.T("campaigns.history.by_system", "system", string(e.Via)),
		}
		switch {
		case e.Actor != "":
			out[i].Actor = texts.T("campaigns.history.by_operator", "actor", e.Actor)
		case e.Via == campaigns.ByAPI:
			out[i].Actor = texts.T("campaigns.history.by_api")
		}
	}
	return out
}
