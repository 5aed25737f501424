package control

import (
	"context"
	"time"
)

// CallEnded is the kind of the event of a call's end. Each call has exactly one.
const CallEnded = "call.ended"

// Event is a fact about a call, written in the transaction that made it true.
type Event struct {
	ID     int64
	CallID string
	OrgID  string
	Kind   string
	Lane   Lane
	Done   []string // steps that have handled it
	// Status and Reason are those of the ended call.
	Status Status
	Reason Reason
	Tries  int // failed tries of the next step
	// Remote reports that the call's files are on another node, which may still take the event.
	Remote bool
	// At is the time of the end.
	At time.Time
}

// EventHandler handles each event at least once. After an error the event is retried later.
type EventHandler interface {
	HandleEvent(ctx context.Context, e Event) error
}

// Lane is a queue of events. Slow steps have a lane of their own so that they do not delay the others.
type Lane int

// Lanes, in the order in which an event passes them.
const (
	FastLane Lane = iota
	SlowLane
)

// Step is a named handler. Its name is stored with the event. No step of the fast lane follows one of the slow lane.
type Step struct {
	Name    string
	Handler EventHandler
	Lane    Lane
	// ConversationOnly skips calls without a conversation.
	ConversationOnly bool
	// AnyNode needs no files of the call, so other nodes may run it if the owner is away.
	AnyNode bool
}

// Outbox holds the events that still have steps to run.
type Outbox interface {
	// Take leases up to most due events of a lane. Events of one call come in order.
	Take(ctx context.Context, line Lane, home string, lease time.Duration, most int) ([]*Event, error)
	// SaveProgress stores the finished steps of an event and extends its lease.
	SaveProgress(ctx context.Context, e *Event, lease time.Duration) error
	// Complete stores the finished steps of events and closes them.
	Complete(ctx context.Context, all []*Event) error
	// MoveToSlowLane stores the finished steps of an event and moves it to the slow lane,
	// from which any node may take it.
	MoveToSlowLane(ctx context.Context, e *Event) error
	// Retry stores the finished steps and Tries of an event and makes it due after wait.
	Retry(ctx context.Context, e *Event, wait time.Duration) error
}

// Backoff returns the wait after the n-th failed try, from 0: 1 s, doubling, at most 5 min.
func Backoff(n int) time.Duration {
	if n > 8 {
		return 5 * time.Minute
	}
	return min(time.Second<<n, 5*time.Minute)
}
