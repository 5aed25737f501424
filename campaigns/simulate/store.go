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
	groups    []string       // keys of the groups
	groupIDs  map[string]int // indexes of the groups
	live      []*campaign    // running campaigns
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
	queues   map[int]*queue // queues by group
	waiting  int            // pending contacts
	busy     int            // contacts that are in a call or wait for the analysis of one
	changes  int
	openKeys []string // groups of the last request
	open     []*queue // queues of these groups
}

type contact struct {
	state   campaigns.State
	number  *number
	dials   int
	retryAt time.Time
	uses    map[int]int // redials by each rule
}

// A numberKey is a number of one organization.
type numberKey struct {
	org int
	n   string
}

type number struct {
	plan.History
	active int   // number of active calls
	listed int64 // start of the do-not-call entry in epoch seconds; 0 means never listed
}

type route struct{ channels, used int }

// Running implements dialer.Store.
func (m *memStore) Running(context.Context) ([]dialer.Campaign, time.Time, error) {
	m.running = m.running[:0]
	for _, c := range m.live {
		if c.waiting > 0 {
			m.running = append(m.running, c.Campaign)
		}
	}
	return m.running, m.now, nil
}

// Take implements dialer.Store.
func (m *memStore) Take(_ context.Context, req dialer.TakeRequest) (dialer.TakeResult, error) {
	c := m.byID[req.ID]
	route := &m.routes[c.route]
	if route.used >= route.channels {
		return dialer.TakeResult{Busy: true}, nil
	}
	at := m.now.UnixNano()
	open := m.openQueues(c, req.Open)
	for _, q := range open {
		q.moveDue(at)
	}
	for {
		q := firstQueue(open)
		if q == nil {
			m.dropEmptyGroups(c)
			return dialer.TakeResult{Next: nextDue(open)}, nil
		}
		e := heap.Pop(&q.ready).(entry) //nolint:forcetypeassert // has only entries
		if m.decide(c, q, e, req) {
			route.used++
			c.Pace = c.Pace.AfterCall(m.now)
			return dialer.TakeResult{Claim: &control.Claim{}}, nil
		}
	}
}

// dropEmptyGroups removes the empty groups of a campaign that has more than twice as many groups as waiting contacts.
func (m *memStore) dropEmptyGroups(c *campaign) {
	if c.waiting*2 < len(c.Groups) {
		c.Groups = slices.DeleteFunc(slices.Clone(c.Groups), func(key string) bool { return c.queues[m.groupIDs[key]].len() == 0 })
	}
}

// openQueues returns the queues of groups.
func (m *memStore) openQueues(c *campaign, keys []string) []*queue {
	if slices.Equal(keys, c.openKeys) {
		return c.open
	}
	c.openKeys, c.open = append(c.openKeys[:0], keys...), c.open[:0]
	for _, key := range keys {
		if q := c.queues[m.groupIDs[key]]; q != nil {
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
func (m *memStore) decide(c *campaign, q *queue, e entry, req dialer.TakeRequest) bool {
	r, x := &m.rows[e.contact], &m.contacts[e.contact]
	n := x.number
	if x.state != campaigns.Pending { // the contact was withdrawn
		return false
	}
	if n.listed != 0 && n.listed <= m.now.Unix() {
		m.setState(c, e.contact, campaigns.Suppressed, campaigns.DNCSuppressed)
		return false
	}
	m.decisions++
	v := req.Gate(m.now, plan.Contact{
		ID: r.Number, Group: m.groups[r.group], RetryAt: x.retryAt, NotBefore: epoch(r.NotBefore), NotAfter: epoch(r.NotAfter),
		History: n.History, Engaged: n.active > 0,
	})
	switch v.Decision {
	case plan.Go:
		x.state = campaigns.InCall
		x.dials++
		n.active++
		n.Dials = append(n.Dials, m.now)
		c.waiting--
		c.busy++
		m.log.dial(m.now, e.contact, x.dials)
		m.onDial(e.contact)
		return true
	case plan.Capped:
		m.setState(c, e.contact, campaigns.Suppressed, campaigns.FrequencyCapped)
	case plan.Missed:
		m.setState(c, e.contact, campaigns.Exhausted, "")
	default:
		e.due = v.Until.UnixNano()
		if v.Until.IsZero() {
			e.due = m.now.Add(time.Minute).UnixNano()
		}
		q.add(e)
	}
	return false
}

// setState takes a contact out of the queue.
func (m *memStore) setState(c *campaign, contact int, s campaigns.State, reason string) {
	m.contacts[contact].state = s
	c.waiting--
	m.log.state(m.now, contact, s, reason)
	m.completeIfDrained(c)
}

// completeIfDrained completes a campaign without pending or active contacts.
func (m *memStore) completeIfDrained(c *campaign) {
	if c.status == campaigns.Running && c.waiting == 0 && c.busy == 0 {
		m.setStatus(c, campaigns.Completed)
	}
}

func (m *memStore) setStatus(c *campaign, s campaigns.Status) {
	c.status = s
	changed := *c.Plan
	changed.Running = s == campaigns.Running
	c.Plan = &changed
	c.changes++
	c.Version = fmt.Sprint(c.changes)
	m.log.status(m.now, c.ID, s)
	m.live = slices.DeleteFunc(m.live, func(x *campaign) bool { return x == c })
	if changed.Running {
		m.live = append(m.live, c)
	}
}

func (m *memStore) number(r *Row) *number {
	key := numberKey{r.org, r.Number}
	n := m.numbers[key]
	if n == nil {
		n = &number{}
		m.numbers[key] = n
	}
	return n
}

// enqueue makes a contact pending until an instant.
func (m *memStore) enqueue(c *campaign, contact int, until time.Time) {
	r := &m.rows[contact]
	q := c.queues[r.group]
	if q == nil {
		q = &queue{}
		c.queues[r.group] = q
	}
	if key := m.groups[r.group]; q.len() == 0 && !slices.Contains(c.Groups, key) {
		c.Groups = append(slices.Clone(c.Groups), key)
	}
	m.contacts[contact].state = campaigns.Pending
	c.waiting++
	q.add(entry{contact: contact, priority: r.Priority, due: until.UnixNano()})
	m.onWaiting(c.ID)
}

func epoch(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0)
}

// locate reads the rows as an import does and assigns their groups. It returns which
// rows are never legal to call.
func (m *memStore) locate(all []Campaign, packages map[string]*market.Package) (never []bool, err error) {
	never = make([]bool, len(m.rows))
	keys := make([]string, len(m.rows))
	m.groupIDs = map[string]int{}
	for i := range m.rows {
		r := &m.rows[i]
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
		m.groupIDs[keys[i]] = 0
	}
	for key := range m.groupIDs {
		m.groups = append(m.groups, key)
	}
	slices.Sort(m.groups)
	for i, key := range m.groups {
		m.groupIDs[key] = i
	}
	for i := range m.rows {
		m.rows[i].group = m.groupIDs[keys[i]]
	}
	return never, nil
}
