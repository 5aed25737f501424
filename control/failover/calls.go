package failover

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/control"
)

// Limits of ended calls kept in memory; beyond them only the journal is left, which has no transcript.
const (
	keptFor   = 10 * time.Minute
	keptCalls = 1000
	keptBytes = 64 << 20
)

// call is a call of this process with its rows as of the time its request left.
type call struct {
	lease control.Lease
	rows  rows

	state                     control.AttemptState
	dialed, ringing, answered time.Time
	final                     *control.CallResult // nil until known
	over                      time.Time           // when it was written to the database
	// changes is the number of reverts seen by the call's writes.
	changes int64
	// detached reports that the call could not be restored and continues without a lease.
	detached bool
}

// rows are the rows of a call as JSON; empty for none.
type rows struct{ call, attempt, contactAttempt, contact, key string }

func (r rows) size() int {
	return len(r.call) + len(r.attempt) + len(r.contactAttempt) + len(r.contact) + len(r.key)
}

func (c *call) size() int {
	n := c.rows.size()
	if c.final != nil {
		for _, l := range c.final.Lines {
			n += len(l.Text) + 64*len(l.Words) + 128
		}
		n += 512 * len(c.final.Turns)
	}
	return n
}

// calls are the running calls of this process and those ended recently. The Monitor's lock must be held.
type calls struct {
	all   map[string]*call // by attempt
	ended []string         // attempts, in the order of their ends
	bytes int              // of those that ended
}

func (c *calls) add(one *call) {
	if c.all == nil {
		c.all = map[string]*call{}
	}
	c.all[one.lease.AttemptID] = one
}

// end keeps an ended call for a while.
func (c *calls) end(one *call, now time.Time) {
	one.over = now
	c.ended = append(c.ended, one.lease.AttemptID)
	c.bytes += one.size()
	for len(c.ended) > 0 {
		first := c.all[c.ended[0]]
		if now.Sub(first.over) < keptFor && len(c.ended) <= keptCalls && c.bytes <= keptBytes {
			return
		}
		c.bytes -= first.size()
		delete(c.all, c.ended[0])
		c.ended = c.ended[1:]
	}
}

// rank orders the states of an attempt.
func rank(s control.AttemptState) int {
	return slices.Index([]control.AttemptState{
		control.Scheduled, control.Claimed, control.Intent, control.Sent, control.Rang, control.Answered, control.Unknown, control.Closed,
	}, s)
}

// moved records a state and its time.
func (c *call) moved(s control.AttemptState, at time.Time) {
	switch s {
	case control.Sent:
		c.dialed = at
	case control.Rang:
		c.ringing = at
	case control.Answered:
		c.answered = at
	default:
		return
	}
	if rank(s) > rank(c.state) {
		c.state = s
	}
}

// found is the database's knowledge of an attempt; an empty state means none.
type found struct {
	state control.AttemptState
	owner string
	epoch int64
	over  bool // its call has ended
	fact  bool // sent_facts has it
}

// action restores an attempt after a revert.
type action int

const (
	leave    action = iota // the database is up to date
	restore                // restore from the rows in memory
	conclude               // end it by the journal entry
	state                  // only record that it was sent
)

// decide returns the action for a request that left. c is nil if this process did not make it or dropped it.
func decide(f found, c *call) action {
	forgotten := f.state == "" || f.state == control.Scheduled || f.state == control.Claimed
	switch {
	case c == nil && !forgotten:
		return leave // its lease lapses if it is still active
	case c == nil && f.state == "":
		return state
	case c == nil:
		return conclude
	case f.over:
		return leave
	case forgotten || !c.over.IsZero():
		return restore
	case f.owner != c.lease.Owner || f.epoch != c.lease.Epoch || rank(f.state) < rank(c.state):
		return restore
	default:
		return leave
	}
}
