// Package progress says how far a campaign is, and why those who wait are not
// called now. It is pure: whoever asks brings the counts and the clock.
package progress

import (
	"maps"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
)

// NotAfter is that the time of a contact is over, and nobody has looked at it
// since; the other reasons why one waits are those of campaigns/plan.
const NotAfter = "not_after"

// A Group is so many waiting contacts that are alike.
type Group struct {
	Key   string    // of the hours that hold for them, as package plan writes it
	Cap   string    // the frequency cap that keeps them; empty for none
	Wait  bool      // their next attempt is later
	Early bool      // not_before is later
	Late  bool      // not_after is over
	Next  time.Time // when the first of those that wait for a time of their own has it; zero for none
	N     int
}

// Facts are what progress is made of.
type Facts struct {
	Now      time.Time
	Campaign campaigns.Campaign
	Counts   campaigns.Counts
	Waiting  []Group
	// Outcomes are the attempts that are over, by what came of them; On are
	// those that are not, Dialled those that began in the last minute.
	Outcomes    map[retry.Outcome]int
	On, Dialled int

	Calendar *plan.Calendar // by which it dials; nil without the package of its market
	Route    bool           // there is a line, and calls get through it
	Stale    bool           // nobody may be called before the registry is loaded anew
	Full     []control.Code // what keeps it from calling those who may be called
	Opens    time.Time      // when hours and law allow the next call; zero for never
}

// A Progress is how far a campaign is, as the API shows it.
type Progress struct {
	CampaignID string           `json:"campaign_id"`
	Status     campaigns.Status `json:"status"`
	AsOf       int64            `json:"as_of"`
	Pace       Pace             `json:"pace"`
	Counters   Counters         `json:"counters"`
	// ByState has no state in which nobody is.
	ByState           map[campaigns.State]int `json:"by_state"`
	Ready             int                     `json:"ready"`
	Holds             int                     `json:"holds"`
	HeldReasons       map[string]int          `json:"held_reasons"`
	SuppressedReasons map[string]int          `json:"suppressed_reasons"`
	AtLaunch          int                     `json:"dnc_suppressed_at_launch"`
	MidCampaign       int                     `json:"dnc_suppressed_mid_campaign"`
	Frequency         Frequency               `json:"frequency"`
	// Until are the first instants at which law, hours or a time of their own stop
	// holding some of those whom they hold, by reason.
	Until map[string]time.Time `json:"-"`
}

// A Pace is how fast the campaign dials.
type Pace struct {
	CallsPerMinute int    `json:"calls_per_minute"`
	Dialled        int    `json:"dialed_last_60s"`
	InFlight       int    `json:"in_flight"`
	WindowOpen     bool   `json:"window_open"`
	NextWindowAt   *int64 `json:"next_window_at"` // while it is closed
	// LimitedBy is what keeps contacts that are ready from being called now.
	LimitedBy []control.Code `json:"limited_by"`
}

// Counters are the attempts: those that are on and those of each outcome are
// all of them.
type Counters struct {
	Contacts   int `json:"contacts"`
	Attempts   int `json:"attempts"`
	Answered   int `json:"answered"`
	Voicemail  int `json:"voicemail"`
	IVR        int `json:"ivr"`
	NoAnswer   int `json:"no_answer"`
	Busy       int `json:"busy"`
	Declined   int `json:"declined"`
	Failed     int `json:"failed"`
	Redials    int `json:"redials_scheduled"`
	InProgress int `json:"calls_in_progress"`
}

// Frequency is whom the caps keep from being called.
type Frequency struct {
	Held    int            `json:"held"`    // they wait
	Blocked int            `json:"blocked"` // they are suppressed
	ByCap   map[string]int `json:"by_governing_cap"`
}

// Of makes a progress of facts.
func Of(f Facts) Progress {
	c := f.Campaign
	p := Progress{
		CampaignID: c.ID, Status: c.Status, AsOf: f.Now.Unix(),
		ByState: some(f.Counts.ByState), SuppressedReasons: some(f.Counts.ByReason), HeldReasons: map[string]int{}, Until: map[string]time.Time{},
		AtLaunch:    f.Counts.AtLaunch,
		MidCampaign: f.Counts.ByReason[campaigns.DNCSuppressed] - f.Counts.AtLaunch,
		Counters:    f.counters(),
		Frequency:   f.frequency(),
		Pace: Pace{
			CallsPerMinute: c.CallsPerMinute, Dialled: f.Dialled, InFlight: f.On, LimitedBy: []control.Code{},
			WindowOpen: !f.Opens.IsZero() && !f.Opens.After(f.Now),
		},
	}
	if f.Opens.After(f.Now) {
		at := f.Opens.Unix()
		p.Pace.NextWindowAt = &at
	}
	pending := f.Counts.ByState[campaigns.Pending]
	if c.Status != campaigns.Running {
		p.hold(plan.NotRunning, pending)
		return p
	}
	for _, g := range f.Waiting {
		reason, until := f.keeps(g)
		if reason == "" {
			continue
		}
		p.hold(reason, g.N)
		if first, ok := p.Until[reason]; !until.IsZero() && (!ok || until.Before(first)) {
			p.Until[reason] = until
		}
	}
	if p.Ready = pending - p.Holds; p.Ready > 0 {
		p.Pace.LimitedBy = append(p.Pace.LimitedBy, f.Full...)
	}
	return p
}

func (p *Progress) hold(reason string, n int) {
	if n > 0 {
		p.HeldReasons[reason] += n
		p.Holds += n
	}
}

// some is a map without its zeros.
func some[K comparable](m map[K]int) map[K]int {
	out := map[K]int{}
	maps.Copy(out, m)
	maps.DeleteFunc(out, func(_ K, n int) bool { return n == 0 })
	return out
}

func (f Facts) counters() Counters {
	o := f.Outcomes
	c := Counters{
		Contacts: f.Counts.All(), Attempts: f.On, InProgress: f.On, Redials: f.Counts.Redials,
		Answered: o[retry.Answered] + o[retry.ShortCall], Voicemail: o[retry.Voicemail], IVR: o[retry.IVR], NoAnswer: o[retry.NoAnswer],
		Busy: o[retry.Busy], Declined: o[retry.Declined], Failed: o[retry.Failed] + o[retry.Congestion] + o[retry.InvalidNumber],
	}
	for _, n := range o {
		c.Attempts += n
	}
	return c
}

func (f Facts) frequency() Frequency {
	q := Frequency{ByCap: map[string]int{}}
	for _, g := range f.Waiting {
		if g.Cap != "" {
			q.Held += g.N
			q.ByCap[g.Cap] += g.N
		}
	}
	for name, n := range f.Counts.Capped {
		q.Blocked += n
		q.ByCap[name] += n
	}
	q.ByCap = some(q.ByCap)
	return q
}

// keeps is why contacts of a running campaign are not called now, empty where
// they may be, and until when, where law, hours or a time of their own keep them.
func (f Facts) keeps(g Group) (reason string, until time.Time) {
	if f.Calendar == nil {
		return plan.NoMarket, until
	}
	soon := f.Now.Add(time.Second)
	is := plan.Facts{Running: true, ScreenStale: f.Stale, RouteDown: !f.Route, Slot: f.Calendar.Slot(f.Now, g.Key)}
	if g.Cap != "" {
		is.Hold = plan.Hold{Cap: g.Cap, Frees: soon}
	}
	if g.Wait {
		is.RetryAt = soon
	}
	if g.Early {
		is.NotBefore = soon
	}
	reason = plan.Gate(f.Now, is).Reason
	if g.Late && (reason == "" || reason == plan.ScreenStale || reason == plan.RouteUnavailable) {
		return NotAfter, until
	}
	switch reason {
	case "":
		return "", until
	case plan.FrequencyCap, plan.RetryWait, plan.NotBefore:
		return reason, g.Next
	case is.Slot.Reason:
		return reason, is.Slot.Until
	default:
		return reason, until
	}
}
