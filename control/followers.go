package control

import (
	"context"
	"time"
)

// CallEnded is the kind of the event of a call's end. There is exactly one a
// call.
const CallEnded = "call.ended"

// An Event is a fact about a call, written in the transaction that made it one.
type Event struct {
	ID       int64
	CallID   string
	OrgID    string
	Kind     string
	Line     Line
	Followed []string // who followed it already
	// Status and Reason are the call's, which is over.
	Status Status
	Reason Reason
	Tries  int // of the follower whose turn it is
	// Away tells that its files lie on another node, which may still come for it.
	Away bool
	// At is when it happened.
	At time.Time
}

// A Follower acts on events, at least once each. An error brings the event
// back to it later.
type Follower interface {
	Follow(ctx context.Context, e Event) error
}

// A Line is where an event waits for its followers. Those that take their time
// have one of their own, so that they hold nobody else up.
type Line int

// Lines, in the order in which an event walks them.
const (
	Quick Line = iota
	Slow
)

// A Step is a follower and the name under which its work is remembered. No step
// of the quick line comes after one of the slow line.
type Step struct {
	Name     string
	Follower Follower
	Line     Line
	// Talked has nothing to follow in calls without a conversation.
	Talked bool
	// Anywhere needs no files of the call: where their node does not come, others
	// follow in its place.
	Anywhere bool
}

// An Outbox holds the events that are not followed to the end.
type Outbox interface {
	// Take leases the next events of a line that are due, at most so many; none
	// where there is none. Events of one call come in order.
	Take(ctx context.Context, line Line, home string, lease time.Duration, most int) ([]*Event, error)
	// Followed keeps who followed an event, and leases it for the next step.
	Followed(ctx context.Context, e *Event, lease time.Duration) error
	// Over keeps who followed events, to their end.
	Over(ctx context.Context, all []*Event) error
	// Onward keeps who followed an event, and puts it into the slow line, where any
	// node may take it.
	Onward(ctx context.Context, e *Event) error
	// Again keeps who followed an event, and brings it back after wait, with the
	// Tries that it has.
	Again(ctx context.Context, e *Event, wait time.Duration) error
}

// Backoff is how long an event waits after its n-th failed try, from 0: 1 s,
// doubling, at most 5 min.
func Backoff(n int) time.Duration {
	if n > 8 {
		return 5 * time.Minute
	}
	return min(time.Second<<n, 5*time.Minute)
}
