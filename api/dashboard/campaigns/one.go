package campaigns

import (
	"fmt"
	"html/template"
	"slices"
	"time"

	"github.com/parley-voice/parley/api/dashboard/chart"
	"github.com/parley-voice/parley/api/dashboard/field"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/checks"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/progress"
	"github.com/parley-voice/parley/campaigns/screen"
	"github.com/parley-voice/parley/campaigns/store"
)

// A check is one of the launch's, and what to do where it fails.
type check struct {
	fix

	Code string
	Fits bool
	Href string // of the fix
}

// one is what the page of a campaign shows.
type one struct {
	desk.Standing

	Draft, Over   bool
	Screened      time.Time // when the list of a draft was held against the do-not-call lists
	Checks        []check   // of a draft, and of a paused campaign
	Blocked       int       // of them
	Passed        int       // of them
	Listed        bool      // numbers are on a do-not-call list, and nobody has decided yet
	Consent       string
	Warnings      []string
	Live          bool
	Progress      progress.Progress
	Stand         []stand // contacts by where they stand
	Why           why
	Held, Left    []count
	Outcomes      []outcome
	Hours, Pace   template.HTML
	Dialled       int // attempts that the hours are of
	Lists         []store.Listed
	History       []event
	Pausable      bool
	Resumable     bool
	HoursInWords  []string
	RetriesInWord string
}

// An outcome is what came of calls, and its share.
type outcome struct {
	Says  string
	N     int
	Meter template.HTML
}

// screening is how the list of a draft is screened for a page: as it was before, with
// its age, unless the page is asked for anew. It asks so by itself where that is old.
func screening(r *frame.Request) screen.Age {
	if r.Query("anew") != "" {
		return screen.Anew
	}
	return screen.Kept
}

func (c *Campaigns) show(r *frame.Request) (frame.Page, error) {
	st, err := c.desk().Get(r.Context(), r.Org(), r.ID(), screening(r))
	if err != nil {
		return frame.Page{}, err
	}
	k := st.Campaign
	o := one{
		Standing: st, Draft: k.Status == campaigns.Draft, Over: k.Status.Over(), Consent: consent(k.ConsentTier()), Live: !k.Status.Over() && k.Status != campaigns.Draft,
		Pausable: campaigns.Allowed(k.Status, campaigns.Pause) == campaigns.Happens, Resumable: k.Status == campaigns.Paused,
		HoursInWords: shifts(k.WorkingHours), RetriesInWord: again(k),
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
			return frame.Page{}, err
		}
	}
	const most = 20
	if o.Lists, err = c.API.Store.Imports(r.Context(), r.DB(), k.ID, most); err != nil {
		return frame.Page{}, err
	}
	log, err := c.API.Store.History(r.Context(), r.DB(), k.ID, most)
	if err != nil {
		return frame.Page{}, err
	}
	o.History = history(log)
	p := frame.Page{Template: "one.html", Title: k.Name, Lead: fmt.Sprintf("%s, by %s, %d calls a minute", k.Classification, k.AgentName, k.CallsPerMinute), Crumbs: above(), Data: o}
	if !o.Over {
		p.Actions = []frame.Link{{Label: "Add numbers", Path: "campaigns/" + k.ID + "/calls"}, {Label: "Withdraw numbers", Path: "campaigns/withdraw"}, {Label: "Cancel the campaign", Path: "campaigns/" + k.ID + "/cancel"}}
	}
	return p, nil
}

// check lists the launch checks, those that fail first.
func (c *Campaigns) check(r *frame.Request, o *one) {
	for _, f := range fixes() {
		failed := slices.ContainsFunc(o.Blockers, func(b checks.Blocker) bool { return b.Code == f.Code })
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
		if failed && f.Code != checks.DNCMatches {
			o.Blocked++
		}
		if !failed {
			o.Passed++
		}
		o.Listed = o.Listed || failed && f.Code == checks.DNCMatches
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

// Of the charts: so many minutes of the pace, and of so many attempts the hours.
const (
	paceMinutes   = 30
	hoursAttempts = 5_000
)

func (c *Campaigns) progress(r *frame.Request, o *one) error {
	k, now := o.Campaign, time.Now()
	var err error
	if o.Progress, err = c.desk().Progress(r.Context(), r.Org(), k.ID); err != nil {
		return err
	}
	o.Why = explain(k, o.Progress, o.Blockers)
	o.Held, o.Left = counts(o.Progress.HeldReasons, held), counts(o.Progress.SuppressedReasons, suppressed)
	o.Outcomes, o.Stand = outcomes(o.Progress.Counters), stands(o.Progress)
	if !o.Over {
		dials, fault := c.API.Store.Dials(r.Context(), r.DB(), k.ID, paceMinutes, now)
		if fault != nil {
			return fault
		}
		o.Pace = pace(dials, k.CallsPerMinute)
	}
	hours, err := c.API.Store.Hours(r.Context(), r.DB(), k, hoursAttempts)
	if err != nil {
		return err
	}
	o.Hours, o.Dialled = byHour(hours)
	return nil
}

// pace draws the calls of the last minutes beside what was asked for.
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
	return chart.Columns(fmt.Sprintf("Calls begun in each of the last %d minutes; %d a minute were asked for", len(dials), asked), "pace", all, asked)
}

// byHour draws the attempts by the hour of the day, and counts them.
func byHour(hours []store.Hour) (template.HTML, int) {
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
		all[h.Hour].N, all[h.Hour].Part = h.Dialled, h.Answered
		all[h.Hour].Title = fmt.Sprintf("%d to %d: %d dialled, %d answered by a person", h.Hour, h.Hour+1, h.Dialled, h.Answered)
		n += h.Dialled
	}
	return chart.Columns("Calls by the hour that it was where the contact is", "hours", all, 0), n
}

// A stand is how many contacts are somewhere.
type stand struct {
	N    int
	Says string
}

func stands(p progress.Progress) []stand {
	return []stand{
		{p.Counters.Contacts, "contacts"},
		{p.Ready, "may be called now"},
		{p.Holds, "wait"},
		{p.Counters.InProgress, "on the line"},
		{p.ByState[campaigns.Done], "done"},
		{p.ByState[campaigns.Exhausted], "not reached"},
		{p.ByState[campaigns.Suppressed], "left out"},
	}
}

func outcomes(c progress.Counters) []outcome {
	var all []outcome
	for _, x := range []struct {
		says string
		n    int
	}{
		{"Answered by a person", c.Answered},
		{"Voicemail", c.Voicemail},
		{"A menu", c.IVR},
		{"No answer", c.NoAnswer},
		{"Busy", c.Busy},
		{"Declined", c.Declined},
		{"Failed", c.Failed},
		{"On the line now", c.InProgress},
	} {
		if x.n > 0 {
			all = append(all, outcome{x.says, x.n, chart.Meter(fmt.Sprintf("%d of %d", x.n, c.Attempts), x.n, c.Attempts)})
		}
	}
	return all
}

// consent is what the one who launches attests.
func consent(tier string) string {
	if tier == "pewc" {
		return "prior express written consent to be called by a machine for marketing"
	}
	return "prior express consent to be called by a machine"
}

// shifts are working hours in words.
func shifts(all []campaigns.Shift) []string {
	var out []string
	names := field.Weekdays()
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

// again says how often a number is called.
func again(k campaigns.Campaign) string {
	switch {
	case len(k.Retry.Rules) > 0:
		return fmt.Sprintf("%d calls at most, by %d rules", k.Retry.Attempts, len(k.Retry.Rules))
	case k.Retry.Attempts <= 1:
		return "none: each number is called once"
	default:
		return fmt.Sprintf("%d calls at most, the second after %d min", k.Retry.Attempts, k.Retry.Interval/60)
	}
}

// warning says what an operator should know, with its numbers.
func warning(w checks.Warning) string {
	text := say(warnings, w.Code)
	switch {
	case w.Code == checks.FrequencyActive && w.Daily != nil && w.Rolling7d != nil:
		text += fmt.Sprintf(" At most %s a day, and %s in 7 days.", most(*w.Daily), most(*w.Rolling7d))
	case w.Count > 0:
		text += fmt.Sprintf(" (%d)", w.Count)
	case w.Unscreened > 0:
		text += fmt.Sprintf(" (%d)", w.Unscreened)
	case w.AgeDays > 0:
		text += fmt.Sprintf(" It is %d days old.", w.AgeDays)
	case w.RouteLimit > 0:
		text += fmt.Sprintf(" It takes %d.", w.RouteLimit)
	}
	return text
}

func most(n int) string {
	if n == 0 {
		return "any number"
	}
	return fmt.Sprint(n)
}

// An event is something that was done to a campaign.
type event struct {
	At      time.Time
	Did, By string
}

func history(all []store.Entry) []event {
	out := make([]event, len(all))
	for i, e := range all {
		out[i] = event{At: e.At, Did: say(actions, e.Action), By: "by the " + string(e.Via)}
		switch {
		case e.Actor != "":
			out[i].By = "by " + e.Actor
		case e.Via == campaigns.BySystem:
			out[i].By = "by itself"
		}
	}
	return out
}
