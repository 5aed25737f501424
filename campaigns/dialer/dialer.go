// Package dialer selects the next contact to call: which campaign is next, which of its contacts may be called now, and
// when to look again. Its Store is Postgres in production (pgqueue) and memory in the simulation.
package dialer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
)

// A Campaign is a running campaign, as the Store returns it.
type Campaign struct {
	ID   string
	Plan *plan.Campaign // never changes within a Version
	// Version changes whenever a field that planning uses changes.
	Version string
	RouteID string
	Pace    plan.Pace
	Groups  []string // keys of the groups that have pending contacts
}

// A TakeRequest asks the Store to take one contact.
type TakeRequest struct {
	Campaign
	At   time.Time
	Open []string // groups that may be called now
	// Gate decides about a contact; the Store stores the decision. The Store must not call Gate after Take returned.
	Gate func(at time.Time, c plan.Contact) plan.Verdict
	// DialHistory returns how far back the dials to a group's numbers must be known.
	DialHistory func(group string) time.Duration
}

// A TakeResult is the result of a TakeRequest. The zero value means that no contact of
// the groups in TakeRequest.Open is waiting.
type TakeResult struct {
	Claim *control.Claim // the call to make
	// Busy reports that the route has no free channel, or that its next call is not due. The dialer then skips the
	// other campaigns of the route, too.
	Busy bool
	// Gone reports that the campaign changed, or that another node takes its contacts now.
	Gone bool
	// Next is when the first contact of the groups in TakeRequest.Open is due, if known. A time
	// in the past means that the Store can consider more contacts at once.
	Next time.Time
}

// A Store has the campaigns and their contacts.
type Store interface {
	// Running returns the running campaigns and the current time. The list is valid until the next
	// call of Running.
	Running(ctx context.Context) ([]Campaign, time.Time, error)
	// Take takes the first contact that the gate accepts, by priority and due time, in
	// one transaction with its call.
	Take(ctx context.Context, a TakeRequest) (TakeResult, error)
}

// DefaultMaxIdle bounds how long the dialer leaves a campaign with no contact to call alone, because other nodes may
// change the campaign.
const DefaultMaxIdle = time.Second

// errorBackoff is the additional pause of a campaign after a failed request, in multiples of the duration of the
// request. The pause leaves time for other campaigns.
const errorBackoff = 5

// minPause is the pause of a campaign that has more contacts to consider, so that other campaigns get a turn.
const minPause = time.Millisecond

// A Dialer takes contacts of all campaigns. It is for one goroutine.
type Dialer struct {
	Store Store
	// MaxIdle replaces DefaultMaxIdle; 0 means the default.
	MaxIdle time.Duration

	laws   plan.LawCache
	states map[string]*state // planning states by campaign ID
	order  []*state          // order of the campaigns in the last call of Take; the next order is similar
	turns  []plan.Turn       // turns in one call of Take
	due    []*state          // due campaigns in one call of Take, by Turn.N
}

// A state is the planning state of one version of a campaign.
type state struct {
	id, version string
	*plan.Calendar
	running     *Campaign // the campaign as the last call of Take read it
	pausedUntil time.Time // no contact can be called until then
	pace        plan.Pace
	earliest    time.Time // earliest next call by the pace
}

// Take takes one contact and returns the claim of its call; nil if no contact can be called now. It also returns the
// wait until Take should be called again. If it returns a claim and an error, the claim is valid, and the error is
// about another campaign.
func (d *Dialer) Take(ctx context.Context) (*control.Claim, time.Duration, error) {
	running, now, err := d.Store.Running(ctx)
	if err != nil {
		return nil, d.maxIdle(), fmt.Errorf("running campaigns: %w", err)
	}
	d.dropStates(running)
	rest := d.collect(running, now)
	var busy map[string]bool // busy routes
	var faults []error
	for _, turn := range plan.SortTurns(now, d.turns) {
		s := d.due[turn.N]
		r := s.running
		if busy[r.RouteID] {
			continue
		}
		began := time.Now()
		result, err := d.request(ctx, s, now)
		if err != nil { // the other campaigns continue
			faults = append(faults, fmt.Errorf("campaign %s: %w", r.ID, err))
			s.pausedUntil = now.Add(d.maxIdle() + errorBackoff*time.Since(began))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if result.Claim != nil {
			return result.Claim, 0, errors.Join(faults...)
		}
		if result.Busy {
			if busy == nil {
				busy = map[string]bool{}
			}
			busy[r.RouteID] = true
		}
	}
	for _, s := range d.due {
		rest = shorterWait(rest, s.pausedUntil.Sub(now))
	}
	return nil, rest, errors.Join(faults...)
}

// collect finds the campaigns that are due. It returns how long until another campaign may be due.
func (d *Dialer) collect(running []Campaign, now time.Time) (rest time.Duration) {
	d.turns, d.due, rest = d.turns[:0], d.due[:0], d.maxIdle()
	for i := range running {
		s := d.state(i, &running[i])
		at := s.earliest
		if s.pausedUntil.After(at) {
			at = s.pausedUntil
		}
		if wait := at.Sub(now); wait > 0 {
			rest = shorterWait(rest, wait)
			continue
		}
		d.turns = append(d.turns, plan.Turn{CampaignID: s.running.ID, Pace: s.running.Pace, N: len(d.due)})
		d.due = append(d.due, s)
	}
	return rest
}

// shorterWait returns the shorter of two waits. It ignores a wait of 0 or less.
func shorterWait(rest, wait time.Duration) time.Duration {
	if wait > 0 && wait < rest {
		return wait
	}
	return rest
}

func (d *Dialer) request(ctx context.Context, s *state, now time.Time) (TakeResult, error) {
	open, until := s.Open(now, s.running.Groups)
	if len(open) == 0 {
		d.pause(s, now, until)
		return TakeResult{}, nil
	}
	result, err := d.Store.Take(ctx, TakeRequest{Campaign: *s.running, At: now, Open: open, Gate: s.Gate, DialHistory: s.DialHistory})
	if err == nil && result.Claim == nil && !result.Busy && !result.Gone {
		if !result.Next.IsZero() && result.Next.Before(until) {
			until = result.Next
		}
		if soonest := now.Add(minPause); until.Before(soonest) {
			until = soonest
		}
		d.pause(s, now, until)
	}
	return result, err
}

// Wake reports new pending contacts of a campaign.
func (d *Dialer) Wake(campaignID string) {
	if s := d.states[campaignID]; s != nil {
		s.pausedUntil = time.Time{}
	}
}

// pause pauses a campaign until an instant, at most for MaxIdle.
func (d *Dialer) pause(s *state, now, until time.Time) {
	if latest := now.Add(d.maxIdle()); until.IsZero() || until.After(latest) {
		until = latest
	}
	s.pausedUntil = until
}

// state returns the planning state of the campaign r, which is the i-th running campaign.
func (d *Dialer) state(i int, r *Campaign) *state {
	if i == len(d.order) {
		d.order = append(d.order, nil)
	}
	s := d.order[i]
	if s == nil || s.id != r.ID {
		s = d.states[r.ID]
	}
	if s == nil || s.version != r.Version {
		s = &state{id: r.ID, version: r.Version, Calendar: plan.NewCalendar(*r.Plan, &d.laws)}
		d.states[r.ID] = s
	}
	d.order[i] = s
	if s.running = r; s.pace != r.Pace {
		s.pace, s.earliest = r.Pace, r.Pace.Earliest()
	}
	return s
}

// dropStates drops the state of campaigns that no longer run.
func (d *Dialer) dropStates(running []Campaign) {
	if d.states == nil {
		d.states = map[string]*state{}
	}
	if len(d.states) <= 2*len(running)+16 {
		return
	}
	ids := map[string]bool{}
	for _, r := range running {
		ids[r.ID] = true
	}
	maps.DeleteFunc(d.states, func(id string, _ *state) bool { return !ids[id] })
	d.order = d.order[:0]
}

func (d *Dialer) maxIdle() time.Duration {
	if d.MaxIdle > 0 {
		return d.MaxIdle
	}
	return DefaultMaxIdle
}
