// Package dialler takes the next contact to be called: which campaign's turn it
// is, which of its contacts may be called now, and when to look again. Where
// campaigns and contacts are kept, and how one is taken, is its Book's: the
// database in production, memory in the simulation.
package dialler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/control"
)

// A Running is a campaign that calls, as its book has it.
type Running struct {
	ID       string
	Campaign *plan.Campaign // what planning needs of it; not to be changed under the same Version
	// Version changes with all of the campaign that planning knows.
	Version string
	RouteID string
	Pace    plan.Pace
	Groups  []string // keys of the groups of its waiting contacts
}

// An Ask is what a book is asked to take.
type Ask struct {
	Running
	At   time.Time
	Open []string // groups that may be called now
	// Gate decides about a contact that the book found; the book keeps what it
	// decides. It is not to be called after the book has answered.
	Gate func(at time.Time, c plan.Contact) plan.Verdict
	// Remembered is for how long the dials of a group's numbers must be known.
	Remembered func(group string) time.Duration
}

// An Answer is what came of an ask. The zero value tells that nobody of the
// open groups waits.
type Answer struct {
	Claim *control.Claim // the call to be made
	// Busy tells that the route has no free line, or that its next call is not
	// due yet: its other campaigns need not ask.
	Busy bool
	// Gone tells that the campaign has changed, or is another node's for now.
	Gone bool
	// Next is when the first contact of the open groups will be due, where that
	// is known; what is not to come tells that there are more to be asked about at once.
	Next time.Time
}

// A Book keeps campaigns and contacts.
type Book interface {
	// Running returns the campaigns that call, and what time it is. The list is
	// used until the next call of it.
	Running(ctx context.Context) ([]Running, time.Time, error)
	// Take takes the first contact that the gate lets go, by priority and by
	// when it was due, in one transaction with its call.
	Take(ctx context.Context, a Ask) (Answer, error)
}

// Patience is how long a campaign that has nobody to call is left alone at
// most: others may have changed what it waits for.
const Patience = time.Second

// trouble is for how many times as long as it took a campaign that is in trouble
// is left alone, from when it was asked: so much more time is the others'.
const trouble = 5

// breath is how long a campaign is left alone that has more contacts to be asked about
// at once: others have their turn before.
const breath = time.Millisecond

// A Dialler takes contacts. It is for one goroutine.
type Dialler struct {
	Book Book
	// Patience, where set, stands in for the constant.
	Patience time.Duration

	almanac plan.Almanac
	seats   map[string]*seat // by campaign
	order   []*seat          // of the last look: the next one is much the same
	turns   []plan.Turn      // of one look
	due     []*seat          // likewise, by Turn.N
}

// A seat is what is known of a campaign in one of its versions.
type seat struct {
	id, version string
	*plan.Calendar
	running  *Running  // of the last look
	asleep   time.Time // it has nobody to call until then
	pace     plan.Pace
	earliest time.Time // of it
}

// Take takes one contact, nil if none is to be called now, and tells when to
// ask again. A claim beside an error is good: another campaign is in trouble.
func (d *Dialler) Take(ctx context.Context) (*control.Claim, time.Duration, error) {
	running, now, err := d.Book.Running(ctx)
	if err != nil {
		return nil, d.patience(), fmt.Errorf("running campaigns: %w", err)
	}
	d.forget(running)
	rest := d.look(running, now)
	var busy map[string]bool // routes
	var faults []error
	for _, turn := range plan.Order(now, d.turns) {
		s := d.due[turn.N]
		r := s.running
		if busy[r.RouteID] {
			continue
		}
		began := time.Now()
		answer, err := d.ask(ctx, s, now)
		if err != nil { // the others go on
			faults = append(faults, fmt.Errorf("campaign %s: %w", r.ID, err))
			s.asleep = now.Add(d.patience() + trouble*time.Since(began))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if answer.Claim != nil {
			return answer.Claim, 0, errors.Join(faults...)
		}
		if answer.Busy {
			if busy == nil {
				busy = map[string]bool{}
			}
			busy[r.RouteID] = true
		}
	}
	for _, s := range d.due {
		rest = sooner(rest, s.asleep.Sub(now))
	}
	return nil, rest, errors.Join(faults...)
}

// look finds the campaigns whose turn it may be, and how long it is until it may
// be another's.
func (d *Dialler) look(running []Running, now time.Time) (rest time.Duration) {
	d.turns, d.due, rest = d.turns[:0], d.due[:0], d.patience()
	for i := range running {
		s := d.seat(i, &running[i])
		at := s.earliest
		if s.asleep.After(at) {
			at = s.asleep
		}
		if wait := at.Sub(now); wait > 0 {
			rest = sooner(rest, wait)
			continue
		}
		d.turns = append(d.turns, plan.Turn{CampaignID: s.running.ID, Pace: s.running.Pace, N: len(d.due)})
		d.due = append(d.due, s)
	}
	return rest
}

// sooner is the shorter rest; what is no wait is none.
func sooner(rest, wait time.Duration) time.Duration {
	if wait > 0 && wait < rest {
		return wait
	}
	return rest
}

// ask looks for a contact of one campaign.
func (d *Dialler) ask(ctx context.Context, s *seat, now time.Time) (Answer, error) {
	open, until := s.Open(now, s.running.Groups)
	if len(open) == 0 {
		d.sleep(s, now, until)
		return Answer{}, nil
	}
	answer, err := d.Book.Take(ctx, Ask{Running: *s.running, At: now, Open: open, Gate: s.Gate, Remembered: s.Remembered})
	if err == nil && answer.Claim == nil && !answer.Busy && !answer.Gone {
		if !answer.Next.IsZero() && answer.Next.Before(until) {
			until = answer.Next
		}
		if soonest := now.Add(breath); until.Before(soonest) {
			until = soonest
		}
		d.sleep(s, now, until)
	}
	return answer, err
}

// Wake tells that contacts of a campaign wait that did not before.
func (d *Dialler) Wake(campaignID string) {
	if s := d.seats[campaignID]; s != nil {
		s.asleep = time.Time{}
	}
}

// sleep leaves a campaign alone until an instant, or for as long as patience has.
func (d *Dialler) sleep(s *seat, now, until time.Time) {
	if latest := now.Add(d.patience()); until.IsZero() || until.After(latest) {
		until = latest
	}
	s.asleep = until
}

// seat is that of a campaign, the i-th of a look, as it is now.
func (d *Dialler) seat(i int, r *Running) *seat {
	if i == len(d.order) {
		d.order = append(d.order, nil)
	}
	s := d.order[i]
	if s == nil || s.id != r.ID {
		s = d.seats[r.ID]
	}
	if s == nil || s.version != r.Version {
		s = &seat{id: r.ID, version: r.Version, Calendar: plan.NewCalendar(*r.Campaign, &d.almanac)}
		d.seats[r.ID] = s
	}
	d.order[i] = s
	if s.running = r; s.pace != r.Pace {
		s.pace, s.earliest = r.Pace, r.Pace.Earliest()
	}
	return s
}

// forget drops what is known of campaigns that do not call any more.
func (d *Dialler) forget(running []Running) {
	if d.seats == nil {
		d.seats = map[string]*seat{}
	}
	if len(d.seats) <= 2*len(running)+16 {
		return
	}
	kept := map[string]bool{}
	for _, r := range running {
		kept[r.ID] = true
	}
	maps.DeleteFunc(d.seats, func(id string, _ *seat) bool { return !kept[id] })
	d.order = d.order[:0]
}

func (d *Dialler) patience() time.Duration {
	if d.Patience > 0 {
		return d.Patience
	}
	return Patience
}
