package control

import (
	"context"
	"errors"
	"time"
)

// SendLog records which calls this node sent. It does so outside the database, because the database may revert to an
// older state.
type SendLog interface {
	// Allow returns ErrForgotten if this node has made the call already, or has made another call to the same number
	// that the database does not know.
	Allow(ctx context.Context, c *Claim) error
	// RecordIntent stores on disk that the INVITE is about to leave, before it returns.
	RecordIntent(ctx context.Context, c *Claim) error
	// RecordState records a new state of the attempt. After Closed, nothing more about the attempt is written to the
	// database.
	RecordState(l Lease, s AttemptState, at time.Time)
	// RecordEnd records the result of a call. A nil result means that nothing was sent.
	RecordEnd(l Lease, f *CallResult) error
	// IsRestored reports whether a fenced call was restored after the database reverted. If so, the write may be
	// repeated.
	IsRestored(ctx context.Context, l Lease) (bool, error)
}

// ErrForgotten means that the database has lost a call that this node made.
var ErrForgotten = errors.New("the database has forgotten what this node sent")

// ContinuityStatus says, from the view of one node, whether the database kept its data.
type ContinuityStatus struct {
	// Changes is the number of times that the database reverted to an older state. A revert is counted after the calls
	// of this node have been restored.
	Changes int
	// Open reports whether calls may be dialed.
	Open bool
}

// Continuity detects that the database reverted to an older state.
type Continuity interface {
	// Check detects a revert and restores the calls that the database has lost.
	Check(ctx context.Context) (ContinuityStatus, error)
	// Err returns the reason why this node must not send anything, or nil if it may.
	Err() error
	// IsDetached reports whether a call runs without a lease because it could not be restored.
	IsDetached(attempt string) bool
}

// noSendLog is the SendLog of a node that keeps no journal.
type noSendLog struct{}

// Allow implements SendLog.
func (noSendLog) Allow(context.Context, *Claim) error { return nil }

// RecordIntent implements SendLog.
func (noSendLog) RecordIntent(context.Context, *Claim) error { return nil }

// RecordState implements SendLog.
func (noSendLog) RecordState(Lease, AttemptState, time.Time) {}

// RecordEnd implements SendLog.
func (noSendLog) RecordEnd(Lease, *CallResult) error { return nil }

// IsRestored implements SendLog.
func (noSendLog) IsRestored(context.Context, Lease) (bool, error) { return false, nil }
