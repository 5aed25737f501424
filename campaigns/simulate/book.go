package simulate

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialler"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
)

// A book keeps campaigns and contacts in memory. It is for one goroutine.
type book struct {
	now       time.Time
	campaigns []*campaign
	contacts  []contact
	rows      []Row
	groups    []string       // keys
	places    map[string]int // of them
	live      []*campaign    // that run
	byID      map[string]*campaign
	running   []dialler.Running
	numbers   map[phone]*number
	routes    []route
	log       *log
	// called is told of each call, to make its end happen.
	called func(contact int)
	// wakes is told of a campaign that has somebody more to call.
	wakes func(campaignID string)
	// Decisions counts what the gate decided.
	decisions int
}

type campaign struct {
	dialler.Running
	retry   retry.Config
	route   int
	status  campaigns.Status
	queues  map[int]*queue // by group
	waiting int            // contacts that are pending
	busy    int            // that are in a call, or await its analysis
	changes int
	asked   []string // groups
	open    []*queue // of them
}

type contact struct {
	state   campaigns.State
	number  *number
	dials   int
	retryAt time.Time
	uses    map[int]int // redials of each rule
}

// A phone is a number as one organization knows it.
type phone struct {
	org int
	n   string
}

type number struct {
	plan.History
	on     int   // calls that are on
	listed int64 // epoch seconds from which it is not to be called; 0 never
}

type route struct{ lines, used int }

// Running implements dialler.Book.
func (b *book) Running(context.Context) ([]dialler.Running, time.Time, error) {
	b.running = b.running[:0]
	for _, c := range b.live {
		if c.waiting > 0 {
			b.running = append(b.running, c.Running)
		}
	}
	return b.running, b.now, nil
}

// Take implements dialler.Book.
func (b *book) Take(_ context.Context, ask dialler.Ask) (dialler.Answer, error) {
	c := b.byID[ask.ID]
	route := &b.routes[c.route]
	if route.used >= route.lines {
		return dialler.Answer{Busy: true}, nil
	}
	at := b.now.UnixNano()
	open := b.open(c, ask.Open)
	for _, q := range open {
		q.ripen(at)
	}
	for {
		q := best(open)
		if q == nil {
			b.thin(c)
			return dialler.Answer{Next: next(open)}, nil
		}
		e := heap.Pop(&q.ready).(entry) //nolint:forcetypeassert // entries alone are in it
		if b.decide(c, q, e, ask) {
			route.used++
			c.Pace = c.Pace.Spent(b.now)
			return dialler.Answer{Claim: &control.Claim{}}, nil
		}
	}
}

// thin takes the groups away of which nobody waits, once they are many.
func (b *book) thin(c *campaign) {
	if c.waiting*2 < len(c.Groups) {
		c.Groups = slices.DeleteFunc(slices.Clone(c.Groups), func(key string) bool { return c.queues[b.places[key]].len() == 0 })
	}
}

// open are the queues of some groups.
func (b *book) open(c *campaign, keys []string) []*queue {
	if slices.Equal(keys, c.asked) {
		return c.open
	}
	c.asked, c.open = append(c.asked[:0], keys...), c.open[:0]
	for _, key := range keys {
		if q := c.queues[b.places[key]]; q != nil {
			c.open = append(c.open, q)
		}
	}
	return c.open
}

// best is the queue whose first contact is to be called first, nil if nobody's
// time has come.
func best(open []*queue) *queue {
	var found *queue
	for _, q := range open {
		if len(q.ready) > 0 && (found == nil || first(q.ready[0], found.ready[0]) < 0) {
			found = q
		}
	}
	return found
}

// next is when the time of a contact comes, zero if nobody waits.
func next(open []*queue) time.Time {
	var soonest int64
	for _, q := range open {
		if len(q.waiting) > 0 && (soonest == 0 || q.waiting[0].due < soonest) {
			soonest = q.waiting[0].due
		}
	}
	if soonest == 0 {
		return time.Time{}
	}
	return time.Unix(0, soonest)
}

// decide asks the gate about a contact that was taken out of its queue, and
// keeps what it says. It tells whether the contact is being called now.
func (b *book) decide(c *campaign, q *queue, e entry, ask dialler.Ask) bool {
	r, x := &b.rows[e.contact], &b.contacts[e.contact]
	n := x.number
	if x.state != campaigns.Pending { // it was withdrawn
		return false
	}
	if n.listed != 0 && n.listed <= b.now.Unix() {
		b.leave(c, e.contact, campaigns.Suppressed, campaigns.DNCSuppressed)
		return false
	}
	b.decisions++
	v := ask.Gate(b.now, plan.Contact{
		ID: r.Number, Group: b.groups[r.group], RetryAt: x.retryAt, NotBefore: epoch(r.NotBefore), NotAfter: epoch(r.NotAfter),
		History: n.History, Engaged: n.on > 0,
	})
	switch v.Fate {
	case plan.Go:
		x.state = campaigns.InCall
		x.dials++
		n.on++
		n.Dials = append(n.Dials, b.now)
		c.waiting--
		c.busy++
		b.log.dial(b.now, e.contact, x.dials)
		b.called(e.contact)
		return true
	case plan.Capped:
		b.leave(c, e.contact, campaigns.Suppressed, campaigns.FrequencyCapped)
	case plan.Missed:
		b.leave(c, e.contact, campaigns.Exhausted, "")
	default:
		e.due = v.Until.UnixNano()
		if v.Until.IsZero() {
			e.due = b.now.Add(time.Minute).UnixNano()
		}
		q.add(e)
	}
	return false
}

// leave ends the waiting of a contact.
func (b *book) leave(c *campaign, contact int, s campaigns.State, reason string) {
	b.contacts[contact].state = s
	c.waiting--
	b.log.state(b.now, contact, s, reason)
	b.drained(c)
}

// drained completes a campaign in which nobody waits and nobody is called.
func (b *book) drained(c *campaign) {
	if c.status == campaigns.Running && c.waiting == 0 && c.busy == 0 {
		b.set(c, campaigns.Completed)
	}
}

// set moves a campaign.
func (b *book) set(c *campaign, s campaigns.Status) {
	c.status = s
	changed := *c.Campaign
	changed.Running = s == campaigns.Running
	c.Campaign = &changed
	c.changes++
	c.Version = fmt.Sprint(c.changes)
	b.log.status(b.now, c.ID, s)
	b.live = slices.DeleteFunc(b.live, func(x *campaign) bool { return x == c })
	if changed.Running {
		b.live = append(b.live, c)
	}
}

func (b *book) number(r *Row) *number {
	key := phone{r.org, r.Number}
	n := b.numbers[key]
	if n == nil {
		n = &number{}
		b.numbers[key] = n
	}
	return n
}

// wait lets a contact of a campaign wait until an instant.
func (b *book) wait(c *campaign, contact int, until time.Time) {
	r := &b.rows[contact]
	q := c.queues[r.group]
	if q == nil {
		q = &queue{}
		c.queues[r.group] = q
	}
	if key := b.groups[r.group]; q.len() == 0 && !slices.Contains(c.Groups, key) {
		c.Groups = append(slices.Clone(c.Groups), key)
	}
	b.contacts[contact].state = campaigns.Pending
	c.waiting++
	q.add(entry{contact: contact, priority: r.Priority, due: until.UnixNano()})
	b.wakes(c.ID)
}

func epoch(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0)
}

// place reads the rows as an import does: where each may be, and so of which
// group it is. It tells which rows the law never lets be called.
func (b *book) place(all []Campaign, packages map[string]*market.Package) (never []bool, err error) {
	never = make([]bool, len(b.rows))
	keys := make([]string, len(b.rows))
	b.places = map[string]int{}
	for i := range b.rows {
		r := &b.rows[i]
		c := all[r.Campaign]
		p := packages[c.Market]
		n, err := p.Read(r.Number)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		where, err := p.Locate(n, r.State, r.Timezone)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		never[i] = n.Refusal != market.Callable || p.Never(epoch(c.StartsAt), where, market.Classification(c.Classification))
		keys[i] = plan.Group{Place: where, Named: r.Timezone}.Key()
		b.places[keys[i]] = 0
	}
	for key := range b.places {
		b.groups = append(b.groups, key)
	}
	slices.Sort(b.groups)
	for i, key := range b.groups {
		b.places[key] = i
	}
	for i := range b.rows {
		b.rows[i].group = b.places[keys[i]]
	}
	return never, nil
}
