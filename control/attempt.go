package control

import "slices"

// AttemptState is the state of an attempt to reach a phone.
type AttemptState string

// States of an attempt, in order.
const (
	Scheduled AttemptState = "scheduled" // waits in the dial queue
	Claimed   AttemptState = "claimed"   // leased by a node
	Intent    AttemptState = "intent"    // committed before the INVITE leaves; from here on the phone may ring
	Sent      AttemptState = "sent"
	Rang      AttemptState = "ringing"
	Answered  AttemptState = "answered"
	Closed    AttemptState = "ended"
	// Unknown: the node was lost between intent and answer. The phone may have rung, so
	// the attempt is never dialed again.
	Unknown AttemptState = "unknown"
)

// moves lists every allowed transition of an attempt.
var moves = map[AttemptState][]AttemptState{ //nolint:gochecknoglobals // read-only table
	Scheduled: {Claimed, Closed},                                  // claimed; canceled or expired
	Claimed:   {Intent, Scheduled, Closed},                        // about to dial; lease lapsed; canceled
	Intent:    {Sent, Rang, Answered, Closed, Unknown, Scheduled}, // Scheduled: the node knows that nothing was sent
	Sent:      {Rang, Answered, Closed, Unknown},
	Rang:      {Answered, Closed, Unknown},
	Answered:  {Closed},
}

// CanMove reports whether an attempt may go from one state to another.
func CanMove(from, to AttemptState) bool { return slices.Contains(moves[from], to) }

// StatesBefore returns the states from which an attempt may reach to, sorted.
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

// Lease is a node's claim on an attempt. Every write names it and fails with ErrFenced after the lease is lost.
type Lease struct {
	AttemptID string
	CallID    string
	Owner     string
	Epoch     int64
}

// NodeID identifies a node.
type NodeID struct {
	// Owner differs for every process.
	Owner string
	// Home is the same for all processes of a data directory.
	Home string
}
