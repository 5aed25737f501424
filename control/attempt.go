package control

import "slices"

// An AttemptState is where an attempt to reach a phone stands.
type AttemptState string

// States of an attempt, in the order in which they pass.
const (
	Scheduled AttemptState = "scheduled" // waits in the dial queue
	Claimed   AttemptState = "claimed"   // a node holds it under a lease
	Intent    AttemptState = "intent"    // committed before the request leaves: from here on it may ring
	Sent      AttemptState = "sent"
	Rang      AttemptState = "ringing"
	Answered  AttemptState = "answered"
	Closed    AttemptState = "ended"
	// Unknown: its node was lost between intent and answer. It may have rung,
	// so it is never dialled again.
	Unknown AttemptState = "unknown"
)

// moves holds every transition of an attempt.
var moves = map[AttemptState][]AttemptState{ //nolint:gochecknoglobals // read-only table
	Scheduled: {Claimed, Closed},                                  // claimed; cancelled or expired
	Claimed:   {Intent, Scheduled, Closed},                        // about to dial; lease lapsed; cancelled
	Intent:    {Sent, Rang, Answered, Closed, Unknown, Scheduled}, // Scheduled: the node itself knows that nothing left
	Sent:      {Rang, Answered, Closed, Unknown},
	Rang:      {Answered, Closed, Unknown},
	Answered:  {Closed},
}

// May reports whether an attempt may go from one state to another.
func May(from, to AttemptState) bool { return slices.Contains(moves[from], to) }

// Before returns the states from which an attempt may reach to, sorted.
func Before(to AttemptState) []AttemptState {
	var from []AttemptState
	for s, next := range moves {
		if slices.Contains(next, to) {
			from = append(from, s)
		}
	}
	slices.Sort(from)
	return from
}

// Alive returns the states in which a node holds an attempt under a lease.
func Alive() []AttemptState { return []AttemptState{Claimed, Intent, Sent, Rang, Answered} }

// A Lease is a node's hold on an attempt. Every write names it, and fails with
// ErrFenced once it is no longer true.
type Lease struct {
	AttemptID string
	CallID    string
	Owner     string
	Epoch     int64
}

// A Place is one node.
type Place struct {
	// Owner is new with every process.
	Owner string
	// Home is the same for all processes of one data directory.
	Home string
}
