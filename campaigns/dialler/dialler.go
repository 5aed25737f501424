// Package dialler takes the next contact to be called: which campaign's turn it
// is, which of its contacts may be called now, and when to look again. Where
// campaigns and contacts are kept, and how one is taken, is its Book's: the
// database in production, memory in the simulation.
package dialler

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// is known.
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

// A Dialler takes contacts. It is for one goroutine.
type Dialler struct {
	Book Book
	// Patience, where set, stands in for the constant.
	Patience time.Duration

	almanac   plan.Almanac
	calendars map[string]calendar
	asleep    map[string]time.Time // campaigns that have nobody to call until then
	turns     []plan.Turn          // of one look
}

type calendar struct {
	version string
	*plan.Calendar
}

// Take takes one contact, nil if none is to be called now, and tells when to
// ask again. A claim beside an error is good: another campaign is in trouble.
func (d *Dialler) Take(ctx context.Context) (*control.Claim, time.Duration, error) {
	running, now, err := d.Book.Running(ctx)
	if err != nil {
		return nil, d.patience(), fmt.Errorf("running campaigns: %w", err)
	}
	d.forget(running)
	d.turns = d.turns[:0]
	for i := range running {
		if r := &running[i]; r.Pace.Due(now) && !now.Before(d.asleep[r.ID]) {
			d.turns = append(d.turns, plan.Turn{CampaignID: r.ID, Pace: r.Pace})
		}
	}
	var busy map[string]bool // routes
	var faults []error
	for _, turn := range plan.Order(now, d.turns) {
		r := &running[slices.IndexFunc(running, func(r Running) bool { return r.ID == turn.CampaignID })]
		if busy[r.RouteID] {
			continue
		}
		began := time.Now()
		answer, err := d.ask(ctx, *r, now)
		if err != nil { // the others go on
			faults = append(faults, fmt.Errorf("campaign %s: %w", r.ID, err))
			d.asleep[r.ID] = now.Add(d.patience() + trouble*time.Since(began))
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
	return nil, d.rest(now, running), errors.Join(faults...)
}

// ask looks for a contact of one campaign.
func (d *Dialler) ask(ctx context.Context, r Running, now time.Time) (Answer, error) {
	k := d.calendar(r)
	open, until := k.Open(now, r.Groups)
	if len(open) == 0 {
		d.sleep(r.ID, now, until)
		return Answer{}, nil
	}
	answer, err := d.Book.Take(ctx, Ask{Running: r, At: now, Open: open, Gate: k.Gate, Remembered: k.Remembered})
	if err == nil && answer.Claim == nil && !answer.Busy && !answer.Gone {
		if !answer.Next.IsZero() && answer.Next.Before(until) {
			until = answer.Next
		}
		d.sleep(r.ID, now, until)
	}
	return answer, err
}

// Wake tells that contacts of a campaign wait that did not before.
func (d *Dialler) Wake(campaignID string) { delete(d.asleep, campaignID) }

// sleep leaves a campaign alone until an instant, or for as long as patience has.
func (d *Dialler) sleep(id string, now, until time.Time) {
	if latest := now.Add(d.patience()); until.IsZero() || until.After(latest) {
		until = latest
	}
	d.asleep[id] = until
}

// rest is how long nothing is to be done.
func (d *Dialler) rest(now time.Time, running []Running) time.Duration {
	rest := d.patience()
	for i := range running {
		at := running[i].Pace.Earliest()
		if until := d.asleep[running[i].ID]; until.After(at) {
			at = until
		}
		if wait := at.Sub(now); wait > 0 && wait < rest {
			rest = wait
		}
	}
	return rest
}

// calendar is that of a campaign as it is now.
func (d *Dialler) calendar(r Running) *plan.Calendar {
	if k, ok := d.calendars[r.ID]; ok && k.version == r.Version {
		return k.Calendar
	}
	k := calendar{r.Version, plan.NewCalendar(*r.Campaign, &d.almanac)}
	d.calendars[r.ID] = k
	delete(d.asleep, r.ID)
	return k.Calendar
}

// forget drops what is known of campaigns that do not call any more.
func (d *Dialler) forget(running []Running) {
	if d.calendars == nil {
		d.calendars, d.asleep = map[string]calendar{}, map[string]time.Time{}
	}
	if len(d.calendars) <= 2*len(running)+16 {
		return
	}
	kept := map[string]bool{}
	for _, r := range running {
		kept[r.ID] = true
	}
	for id := range d.calendars {
		if !kept[id] {
			delete(d.calendars, id)
			delete(d.asleep, id)
		}
	}
}

func (d *Dialler) patience() time.Duration {
	if d.Patience > 0 {
		return d.Patience
	}
	return Patience
}
