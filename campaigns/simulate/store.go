package simulate

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/plan"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
)

// A memStore keeps campaigns and contacts in memory. It is for one goroutine.
type memStore struct {
	now       time.Time
	campaigns []*campaign
	contacts  []contact
	rows      []Row
	groups    []string       // keys
	groupIDs  map[string]int // indexes of groups
	live      []*campaign    // running
	byID      map[string]*campaign
	running   []dialer.Campaign
	numbers   map[numberKey]*number
	routes    []route
	log       *log
	// onDial is called for each call, to schedule its end.
	onDial func(contact int)
	// onWaiting is called for a campaign with a new pending contact.
	onWaiting func(campaignID string)
	// decisions counts the gate's decisions.
	decisions int
}

type campaign struct {
	dialer.Campaign
	retry    retry.Config
	route    int
	status   campaigns.Status
	queues   map[int]*queue // by group
	waiting  int            // pending contacts
	busy     int            // contacts in a call, or waiting for its analysis
	changes  int
	openKeys []string // groups of the last request
	open     []*queue // their queues
}

type contact struct {
	state   campaigns.State
	number  *number
	dials   int
	retryAt time.Time
	uses    map[int]int // redials of each rule
}

// A numberKey is a number of one organization.
type numberKey struct {
	org int
	n   string
}

type number struct {
	plan.History
	active int   // active calls
	listed int64 // epoch seconds of the do-not-call entry; 0 never
}

type route struct{ channels, used int }

// Running implements dialer.Store.
func (b *memStore) Running(context.Context) ([]dialer.Campaign, time.Time, error) {
	b.running = b.running[:0]
	for _, c := range b.live {
		if c.waiting > 0 {
			b.running = append(b.running, c.Campaign)
		}
	}
	return b.running, b.now, nil
}

// Take implements dialer.Store.
func (b *memStore) Take(_ context.Context, ask dialer.TakeRequest) (dialer.TakeResult, error) {
	c := b.byID[ask.ID]
	route := &b.routes[c.route]
	if route.used >= route.channels {
		return dialer.TakeResult{Busy: true}, nil
	}
	at := b.now.UnixNano()
	open := b.openQueues(c, ask.Open)
	for _, q := range open {
		q.moveDue(at)
	}
	for {
		q := firstQueue(open)
		if q == nil {
			b.dropEmptyGroups(c)
			return dialer.TakeResult{Next: nextDue(open)}, nil
		}
		e := heap.Pop(&q.ready).(entry) //nolint:forcetypeassert // has only entries
		if b.decide(c, q, e, ask) {
			route.used++
			c.Pace = c.Pace.AfterCall(b.now)
			return dialer.TakeResult{Claim: &control.Claim{}}, nil
		}
	}
}

// dropEmptyGroups removes empty groups once they outnumber the contacts.
func (b *memStore) dropEmptyGroups(c *campaign) {
	if c.waiting*2 < len(c.Groups) {
		c.Groups = slices.DeleteFunc(slices.Clone(c.Groups), func(key string) bool { return c.queues[b.groupIDs[key]].len() == 0 })
	}
}

// openQueues returns the queues of groups.
func (b *memStore) openQueues(c *campaign, keys []string) []*queue {
	if slices.Equal(keys, c.openKeys) {
		return c.open
	}
	c.openKeys, c.open = append(c.openKeys[:0], keys...), c.open[:0]
	for _, key := range keys {
		if q := c.queues[b.groupIDs[key]]; q != nil {
			c.open = append(c.open, q)
		}
	}
	return c.open
}

// firstQueue returns the queue whose first contact is called first, nil if no contact is due.
func firstQueue(open []*queue) *queue {
	var found *queue
	for _, q := range open {
		if len(q.ready) > 0 && (found == nil || compareEntries(q.ready[0], found.ready[0]) < 0) {
			found = q
		}
	}
	return found
}

// nextDue returns when the next contact is due, zero if none is waiting.
func nextDue(open []*queue) time.Time {
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

// decide asks the gate about a contact and applies the decision. It reports whether the
// contact is called now.
func (b *memStore) decide(c *campaign, q *queue, e entry, ask dialer.TakeRequest) bool {
	r, x := &b.rows[e.contact], &b.contacts[e.contact]
	n := x.number
	if x.state != campaigns.Pending { // withdrawn
		return false
	}
	if n.listed != 0 && n.listed <= b.now.Unix() {
		b.setState(c, e.contact, campaigns.Suppressed, campaigns.DNCSuppressed)
		return false
	}
	b.decisions++
	v := ask.Gate(b.now, plan.Contact{
		ID: r.Number, Group: b.groups[r.group], RetryAt: x.retryAt, NotBefore: epoch(r.NotBefore), NotAfter: epoch(r.NotAfter),
		History: n.History, Engaged: n.active > 0,
	})
	switch v.Decision {
	case plan.Go:
		x.state = campaigns.InCall
		x.dials++
		n.active++
		n.Dials = append(n.Dials, b.now)
		c.waiting--
		c.busy++
		b.log.dial(b.now, e.contact, x.dials)
		b.onDial(e.contact)
		return true
	case plan.Capped:
		b.setState(c, e.contact, campaigns.Suppressed, campaigns.FrequencyCapped)
	case plan.Missed:
		b.setState(c, e.contact, campaigns.Exhausted, "")
	default:
		e.due = v.Until.UnixNano()
		if v.Until.IsZero() {
			e.due = b.now.Add(time.Minute).UnixNano()
		}
		q.add(e)
	}
	return false
}

// setState takes a contact out of the queue.
func (b *memStore) setState(c *campaign, contact int, s campaigns.State, reason string) {
	b.contacts[contact].state = s
	c.waiting--
	b.log.state(b.now, contact, s, reason)
	b.completeIfDrained(c)
}

// completeIfDrained completes a campaign without pending or active contacts.
func (b *memStore) completeIfDrained(c *campaign) {
	if c.status == campaigns.Running && c.waiting == 0 && c.busy == 0 {
		b.setStatus(c, campaigns.Completed)
	}
}

// setStatus changes the status of a campaign.
func (b *memStore) setStatus(c *campaign, s campaigns.Status) {
	c.status = s
	changed := *c.Plan
	changed.Running = s == campaigns.Running
	c.Plan = &changed
	c.changes++
	c.Version = fmt.Sprint(c.changes)
	b.log.status(b.now, c.ID, s)
	b.live = slices.DeleteFunc(b.live, func(x *campaign) bool { return x == c })
	if changed.Running {
		b.live = append(b.live, c)
	}
}

func (b *memStore) number(r *Row) *number {
	key := numberKey{r.org, r.Number}
	n := b.numbers[key]
	if n == nil {
		n = &number{}
		b.numbers[key] = n
	}
	return n
}

// enqueue makes a contact pending until an instant.
func (b *memStore) enqueue(c *campaign, contact int, until time.Time) {
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
	b.onWaiting(c.ID)
}

func epoch(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0)
}

// locate reads the rows as an import does and assigns their groups. It returns which
// rows are never legal to call.
func (b *memStore) locate(all []Campaign, packages map[string]*market.Package) (never []bool, err error) {
	never = make([]bool, len(b.rows))
	keys := make([]string, len(b.rows))
	b.groupIDs = map[string]int{}
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
		never[i] = n.Refusal != market.Callable || p.NeverLegal(epoch(c.StartsAt), where, market.Classification(c.Classification))
		keys[i] = plan.Group{Location: where, Named: r.Timezone}.Key()
		b.groupIDs[keys[i]] = 0
	}
	for key := range b.groupIDs {
		b.groups = append(b.groups, key)
	}
	slices.Sort(b.groups)
	for i, key := range b.groups {
		b.groupIDs[key] = i
	}
	for i := range b.rows {
		b.rows[i].group = b.groupIDs[keys[i]]
	}
	return never, nil
}
