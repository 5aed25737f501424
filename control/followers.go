package control

import (
	"context"
	"errors"
	"time"
)

// CallEnded is the kind of the event that reports the end of a call. Each ended call has exactly one such event.
const CallEnded = "call.ended"

// Event reports a change of a call. It is written in the same transaction as the change.
type Event struct {
	ID     int64
	CallID string
	OrgID  string
	Kind   string
	Lane   Lane
	Done   []string // names of the steps that have handled the event
	// Status and Reason are the status and reason of the ended call.
	Status Status
	Reason Reason
	Tries  int // failed tries of the next step
	// Remote reports that another node has the call's files and may still take the event. Lost reports that this node
	// has shown no sign of life for so long that the AfterLoss step runs.
	Remote, Lost bool
	// Released reports that the event needs its node no longer. Outbox.Retry stores it.
	Released bool
	// At is the time at which the call ended.
	At time.Time
}

// EventHandler handles each event at least once. If it returns an error, it gets the event again later.
type EventHandler interface {
	HandleEvent(ctx context.Context, e Event) error
}

// Lane is a queue of events. Slow steps have a lane of their own, so that they do not delay other steps.
type Lane int

// An event passes the lanes in this order.
const (
	FastLane Lane = iota
	SlowLane
)

// Step is an event handler with a name. The names of finished steps are stored with the event. In the list of steps,
// all steps of the fast lane come first.
type Step struct {
	Name    string
	Handler EventHandler
	Lane    Lane
	// ConversationOnly means that the step skips calls without a conversation.
	ConversationOnly bool
	// AnyNode means that the step needs no files of the call. Other nodes may run it if the node that has the files is
	// down.
	AnyNode bool
	// AfterLoss means that the step runs only on other nodes, after the node that has the files is lost. If it succeeds,
	// any node runs the rest of the steps. If it returns ErrNeedsNode, the event waits for its node.
	AfterLoss bool
}

// RunsFor reports whether this node runs the step for an event that it has taken.
func (s *Step) RunsFor(e *Event) bool {
	switch {
	case s.ConversationOnly && !e.HadConversation():
		return false
	case s.AfterLoss:
		return e.Remote && e.Lost
	default:
		return s.AnyNode || !e.Remote
	}
}

// ErrNeedsNode is returned by an AfterLoss step if it cannot do without the files of the lost node.
var ErrNeedsNode = errors.New("the files of the call are on a lost node")

// HomeTimeout is the time for which an event is reserved for the node that has the call's files.
const HomeTimeout = 10 * time.Minute

// Outbox stores the events that still have steps to run.
type Outbox interface {
	// Take leases due events of a lane; the argument most limits their number. The events of one call come in order.
	Take(ctx context.Context, line Lane, home string, lease time.Duration, most int) ([]*Event, error)
	// SaveProgress stores the finished steps of an event and extends its lease.
	SaveProgress(ctx context.Context, e *Event, lease time.Duration) error
	// Complete stores the finished steps of events and marks the events as done.
	Complete(ctx context.Context, all []*Event) error
	// MoveToSlowLane stores the finished steps of an event and moves it to the slow lane,
	// from which any node may take it.
	MoveToSlowLane(ctx context.Context, e *Event) error
	// Retry stores the finished steps, Tries and Released of an event. The event becomes due again after wait.
	Retry(ctx context.Context, e *Event, wait time.Duration) error
}

// Backoff returns the wait after failed try n, counted from 0. It starts at 1 s, doubles with each try, and is at
// most 5 min.
func Backoff(n int) time.Duration {
	if n > 8 {
		return 5 * time.Minute
	}
	return min(time.Second<<n, 5*time.Minute)
}
