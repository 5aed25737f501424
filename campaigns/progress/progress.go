// Package progress reports how far a campaign is, and why waiting contacts are not
// called now. It is pure: the caller passes the counts and the time.
package progress

import (
	"maps"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/pricing"
)

// NotAfter is the hold reason of a contact whose not_after has passed, until the dialer checks the contact. The other
// reasons are those of campaigns/plan.
const NotAfter = "not_after"

// A Group counts pending contacts that have the values of its fields in common.
type Group struct {
	Key   string    // key of the contacts' calling hours; see plan.Group
	Cap   string    // frequency cap that holds the contacts; empty for none
	Wait  bool      // the next attempt is due later
	Early bool      // not_before is later
	Late  bool      // not_after has passed
	Next  time.Time // earliest next attempt or not_before in the future; zero for none
	Last  time.Time // the latest of these times; zero for none
	N     int
}

// Facts are the input of Compute.
type Facts struct {
	Now      time.Time
	Campaign campaigns.Campaign
	Counts   campaigns.Counts
	Waiting  []Group
	// Outcomes counts the ended attempts by outcome. InProgress counts the active attempts, and Dialed those begun in
	// the last minute.
	Outcomes           map[retry.Outcome]int
	InProgress, Dialed int
	Tried              int // contacts that were called
	Recent             Recent

	Calendar *plan.Calendar // nil without the rules of the campaign's market
	Route    bool           // the route exists, and its breaker is closed
	Down     bool           // no node can use the providers of the agent
	Failing  bool           // too many calls of the campaign broke because of Parley or a provider
	Paused   bool           // the carrier asked all nodes to pause the trunk
	Stale    bool           // no contact may be called before the registry is reloaded
	// FailedOver reports that the database failed over, and not all nodes have reported the calls that they sent.
	FailedOver bool
	DiskFull   bool           // the campaign's calls are recorded, and disk space is low
	Full       []control.Code // limits that are reached while contacts are ready
	Spending   admission.Spending
	Opens      time.Time // when hours and law allow the next call; zero means never
}

// A Progress is the progress of a campaign as the API returns it.
type Progress struct {
	CampaignID string           `json:"campaign_id"`
	Status     campaigns.Status `json:"status"`
	AsOf       int64            `json:"as_of"`
	Pace       Pace             `json:"pace"`
	Counters   Counters         `json:"counters"`
	// ByState omits states without contacts.
	ByState           map[campaigns.State]int `json:"by_state"`
	Ready             int                     `json:"ready"`
	Holds             int                     `json:"holds"`
	HeldReasons       map[string]int          `json:"held_reasons"`
	SuppressedReasons map[string]int          `json:"suppressed_reasons"`
	AtLaunch          int                     `json:"dnc_suppressed_at_launch"`
	MidCampaign       int                     `json:"dnc_suppressed_mid_campaign"`
	Frequency         Frequency               `json:"frequency"`
	Cost              Cost                    `json:"cost"`
	Budget            *Budget                 `json:"budget"` // nil if there is no budget
	// Next is the first time at which the law, the working hours and a waiting contact's own times allow a call to
	// it; zero for none.
	Next time.Time `json:"-"`
}

// A Pace is the dialing speed of the campaign.
type Pace struct {
	CallsPerMinute int    `json:"calls_per_minute"`
	Dialed         int    `json:"dialed_last_60s"`
	InFlight       int    `json:"in_flight"`
	WindowOpen     bool   `json:"window_open"`
	NextWindowAt   *int64 `json:"next_window_at"` // only while the window is closed
	// NextCallAt is the first time at which a contact may be called; nil while a contact is ready, or if the time is
	// unknown.
	NextCallAt *int64 `json:"next_call_at"`
	// LimitedBy has the limits that hold ready contacts.
	LimitedBy []control.Code `json:"limited_by"`
}

// Counters are the attempts, by outcome and in progress.
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

// A Frequency counts the contacts that frequency caps hold.
type Frequency struct {
	Held    int            `json:"held"`    // waiting contacts
	Blocked int            `json:"blocked"` // suppressed contacts
	ByCap   map[string]int `json:"by_governing_cap"`
}

// A Cost is what the ended calls of the campaign cost, in currency units.
type Cost struct {
	Amount pricing.Amount `json:"amount"`
	// PerAnswered is the amount divided by the calls that a person answered; nil without such calls.
	PerAnswered *pricing.Amount `json:"per_answered_call"`
}

func newCost(spent pricing.Amount, answered int) Cost {
	c := Cost{Amount: spent}
	if answered > 0 {
		n := pricing.Amount(answered)
		each := spent / n
		if 2*(spent%n) >= n {
			each++
		}
		c.PerAnswered = &each
	}
	return c
}

// A Budget is the use of the budget of the campaign, in currency units.
type Budget struct {
	Limit      pricing.Amount `json:"limit"`
	Spent      pricing.Amount `json:"spent"`       // cost of the ended calls
	InProgress pricing.Amount `json:"in_progress"` // expected cost of the calls in progress
	Left       pricing.Amount `json:"left"`
	Expected   pricing.Amount `json:"expected_per_call"`
}

// Compute returns the progress for the facts.
func Compute(f Facts) Progress {
	c := f.Campaign
	p := Progress{
		CampaignID: c.ID, Status: c.Status, AsOf: f.Now.Unix(),
		ByState: withoutZeros(f.Counts.ByState), SuppressedReasons: withoutZeros(f.Counts.ByReason), HeldReasons: map[string]int{},
		AtLaunch:    f.Counts.AtLaunch,
		MidCampaign: f.Counts.ByReason[campaigns.DNCSuppressed] - f.Counts.AtLaunch,
		Counters:    f.counters(),
		Frequency:   f.frequency(),
		Pace: Pace{
			CallsPerMinute: c.CallsPerMinute, Dialed: f.Dialed, InFlight: f.InProgress, LimitedBy: []control.Code{},
			WindowOpen: !f.Opens.IsZero() && !f.Opens.After(f.Now),
		},
	}
	p.Cost = newCost(f.Spending.Spent, p.Counters.Answered)
	if u := f.Spending; u.Budget > 0 {
		p.Budget = &Budget{Limit: u.Budget, Spent: u.Spent, InProgress: u.Reserved(), Left: u.Left(), Expected: u.Expected}
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
		reason, from := f.HoldReason(g)
		p.hold(reason, g.N)
		if from.IsZero() || f.Opens.IsZero() {
			continue
		}
		if next, ok := f.Calendar.NextOpen(from, g.Key, p.Next); ok {
			p.Next = next.UTC()
		}
	}
	if p.Ready = pending - p.Holds; p.Ready > 0 {
		if !f.Spending.Allows() {
			p.Pace.LimitedBy = append(p.Pace.LimitedBy, control.CodeCampaignBudget)
		}
		p.Pace.LimitedBy = append(p.Pace.LimitedBy, f.Full...)
	} else if !p.Next.IsZero() {
		at := p.Next.Unix()
		p.Pace.NextCallAt = &at
	}
	return p
}

func (p *Progress) hold(reason string, n int) {
	if n > 0 && reason != "" {
		p.HeldReasons[reason] += n
		p.Holds += n
	}
}

// withoutZeros returns a copy of a map without zero values.
func withoutZeros[K comparable](m map[K]int) map[K]int {
	out := map[K]int{}
	maps.Copy(out, m)
	maps.DeleteFunc(out, func(_ K, n int) bool { return n == 0 })
	return out
}

func (f Facts) counters() Counters {
	o := f.Outcomes
	c := Counters{
		Contacts: f.Counts.Total(), Attempts: f.InProgress, InProgress: f.InProgress, Redials: f.Counts.Redials,
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
	q.ByCap = withoutZeros(q.ByCap)
	return q
}

// HoldReason returns why the contacts of a group are not called now, although the campaign runs; empty if they may be
// called. from is when the contacts' own times allow a call. It is zero unless the reason is the law, the working
// hours or one of these times.
func (f Facts) HoldReason(g Group) (reason string, from time.Time) {
	if f.Calendar == nil {
		return plan.NoMarket, from
	}
	soon := f.Now.Add(time.Second)
	facts := plan.Facts{
		Running: true, ScreenStale: f.Stale, CarrierPaused: f.Paused, RouteDown: !f.Route, AgentDown: f.Down,
		Failing: f.Failing, DiskFull: f.DiskFull, FailedOver: f.FailedOver, Slot: f.Calendar.Slot(f.Now, g.Key),
	}
	if g.Cap != "" {
		facts.Hold = plan.Hold{Cap: g.Cap, Until: soon}
	}
	if g.Wait {
		facts.RetryAt = soon
	}
	if g.Early {
		facts.NotBefore = soon
	}
	reason = plan.Gate(f.Now, facts).Reason
	switch reason {
	case "", plan.ScreenStale, plan.CarrierPaused, plan.RouteUnavailable, plan.ProviderUnavailable, plan.TooManyFailures,
		plan.RecordingUnavailable, plan.DatabaseFailover:
		if g.Late {
			return NotAfter, from
		}
	}
	switch reason {
	case plan.FrequencyCap, plan.RetryWait, plan.NotBefore:
		return reason, g.Next
	case "":
		return "", from
	case facts.Slot.Reason:
		if g.Late {
			return reason, from
		}
		from = f.Now
		if g.Next.After(from) {
			from = g.Next
		}
		return reason, from
	default:
		return reason, from
	}
}
