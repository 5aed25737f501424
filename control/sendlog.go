package control

import (
	"context"
	"errors"
	"time"
)

// SendLog records outside the database what this node sent, because the database may revert to an earlier state.
type SendLog interface {
	// Allow returns ErrForgotten if this node already made the call, or made a call to its
	// number that the database does not know.
	Allow(ctx context.Context, c *Claim) error
	// RecordIntent returns once the request about to leave is on disk.
	RecordIntent(ctx context.Context, c *Claim) error
	// RecordState records a state of the attempt. After Closed nothing more of it is written to the database.
	RecordState(l Lease, s AttemptState, at time.Time)
	// RecordEnd records the result; nil means that nothing was sent.
	RecordEnd(l Lease, f *CallResult) error
	// IsRestored reports whether a fenced call was restored after the database reverted;
	// the write may then be repeated.
	IsRestored(ctx context.Context, l Lease) (bool, error)
}

// ErrForgotten is returned for a queued call that this node has already made.
var ErrForgotten = errors.New("the database has forgotten what this node sent")

// ContinuityStatus is the state of the database's history as seen by one node.
type ContinuityStatus struct {
	// Changes counts the detected reverts to an earlier state. The calls of this node are restored by then.
	Changes int
	// Open reports whether dialing is allowed.
	Open bool
}

// Continuity detects that the database reverted to an earlier state.
type Continuity interface {
	// Check detects a revert and restores forgotten calls.
	Check(ctx context.Context) (ContinuityStatus, error)
	// Err returns why this node must send nothing; nil if it may.
	Err() error
	// IsDetached reports whether a call continues without a lease because it could not be restored.
	IsDetached(attempt string) bool
}

// noSendLog is used by nodes without a journal.
type noSendLog struct{}

// Allow implements Sends.
func (noSendLog) Allow(context.Context, *Claim) error { return nil }

// RecordIntent implements Sends.
func (noSendLog) RecordIntent(context.Context, *Claim) error { return nil }

// RecordState implements Sends.
func (noSendLog) RecordState(Lease, AttemptState, time.Time) {}

// RecordEnd implements Sends.
func (noSendLog) RecordEnd(Lease, *CallResult) error { return nil }

// IsRestored implements Sends.
func (noSendLog) IsRestored(context.Context, Lease) (bool, error) { return false, nil }
