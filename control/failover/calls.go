package failover

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/control"
)

// Limits of the ended calls in memory. Other calls can be restored only from the journal, which has no transcripts.
const (
	keptFor   = 10 * time.Minute
	keptCalls = 1000
	keptBytes = 64 << 20
)

// call is a call of this process, with its database rows as they were when its INVITE left.
type call struct {
	lease control.Lease
	rows  rows

	state                     control.AttemptState
	dialed, ringing, answered time.Time
	final                     *control.CallResult // nil until the call ended
	over                      time.Time           // time at which the result was written to the database
	// changes is the value of Stats.Changes when the call was sent, or when IsRestored last returned true.
	changes int64
	// detached means that the call could not be restored and runs without a lease.
	detached bool
}

// rows are the database rows that belong to a call, as JSON. A row that does not exist is an empty string.
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

// calls holds the calls of this process that run or ended recently. The caller must hold the Monitor's lock.
type calls struct {
	all   map[string]*call // by attempt id
	ended []string         // attempt ids, in the order in which the calls ended
	bytes int              // size of the ended calls
}

func (c *calls) add(one *call) {
	if c.all == nil {
		c.all = map[string]*call{}
	}
	c.all[one.lease.AttemptID] = one
}

// end marks a call as ended. It keeps the call until a limit for ended calls is reached.
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

func rank(s control.AttemptState) int {
	return slices.Index([]control.AttemptState{
		control.Scheduled, control.Claimed, control.Intent, control.Sent, control.Rang, control.Answered, control.Unknown, control.Closed,
	}, s)
}

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

// found describes an attempt as the database has it. If state is empty, the database does not have the attempt.
type found struct {
	state control.AttemptState
	owner string
	epoch int64
	over  bool // the call has ended
	fact  bool // table sent_facts has the attempt
}

// action says how an attempt is restored after a revert.
type action int

const (
	leave    action = iota // nothing to do: the database is up to date
	restore                // restore the call from the rows in memory
	conclude               // end the call with the result in its journal entry
	state                  // record only that the call was sent; see recordSent
)

// decide returns how to restore an attempt whose INVITE left. c is nil if this process did not make the call or has
// dropped it from memory.
func decide(f found, c *call) action {
	forgotten := f.state == "" || f.state == control.Scheduled || f.state == control.Claimed
	switch {
	case c == nil && !forgotten:
		return leave // if the attempt is still active, its lease expires
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
