package control

import "slices"

// AttemptState is the state of an attempt to reach a phone.
type AttemptState string

// States of an attempt, in the order in which an attempt passes them.
const (
	Scheduled AttemptState = "scheduled" // waiting in the dial queue
	Claimed   AttemptState = "claimed"   // leased by a node
	Intent    AttemptState = "intent"    // committed before the INVITE leaves; from here on the phone may ring
	Sent      AttemptState = "sent"
	Rang      AttemptState = "ringing"
	Answered  AttemptState = "answered"
	Closed    AttemptState = "ended"
	// Unknown means that the node was lost between Intent and Answered. The phone may have rung, so the attempt is
	// never dialed again.
	Unknown AttemptState = "unknown"
)

// moves lists the allowed transitions from each state.
var moves = map[AttemptState][]AttemptState{ //nolint:gochecknoglobals // read-only table
	Scheduled: {Claimed, Closed},                                  // claimed by a node; canceled or expired
	Claimed:   {Intent, Scheduled, Closed},                        // about to dial; lease expired; canceled
	Intent:    {Sent, Rang, Answered, Closed, Unknown, Scheduled}, // Scheduled only if the node knows that nothing was sent
	Sent:      {Rang, Answered, Closed, Unknown},
	Rang:      {Answered, Closed, Unknown},
	Answered:  {Closed},
}

// CanMove reports whether an attempt may move from one state to another.
func CanMove(from, to AttemptState) bool { return slices.Contains(moves[from], to) }

// StatesBefore returns the sorted list of states from which an attempt may move to a given state.
func StatesBefore(to AttemptState) []AttemptState {
	var from []AttemptState
	for s, next := range moves {
		if slices.Contains(next, to) {
			from = append(from, s)
		}
	}
	slices.Sort(from)
	return from
}

// HeldStates returns the states in which a node leases an attempt.
func HeldStates() []AttemptState { return []AttemptState{Claimed, Intent, Sent, Rang, Answered} }

// Lease is the time-limited right of a node to write an attempt. Every write carries the lease, and fails with
// ErrFenced after the node has lost the lease.
type Lease struct {
	AttemptID string
	CallID    string
	Owner     string
	Epoch     int64
}

// NodeID identifies a node.
type NodeID struct {
	// Owner is different for every process.
	Owner string
	// Home is the same for all processes that use the same data directory.
	Home string
}
