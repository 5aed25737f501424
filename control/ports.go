package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Dialer dials phones. ctx limits only the dialing. An error says why no leg was established; it is a
// *media.DialError if the cause is known. progress may be called from any goroutine before Dial returns. The INVITE
// does not leave after to.NotAfter (media.ErrTooLate), nor while the carrier has asked for a pause (media.ErrPaused).
// If progress did not report media.Sent, no INVITE left; otherwise the carrier had refused an earlier one.
type Dialer interface {
	Dial(ctx context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error)
}

// Talker holds the conversation on a leg. Talk returns when the leg or the context has ended.
type Talker interface {
	Talk(ctx context.Context, leg media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error)
}

// Recorder records the audio of both directions of a leg. Record returns the leg to use instead of the given one.
type Recorder interface {
	Record(callID string, leg media.Leg) (media.Leg, Recording, error)
}

// Recording is a recording in progress.
type Recording interface {
	// Close finishes the recording and returns the path of its file. The path is "" if nothing was recorded. If the
	// error is ErrTruncated, the file contains only the beginning.
	Close() (path string, err error)
}

// ErrTruncated is returned if only the beginning of a recording could be written.
var ErrTruncated = errors.New("recording is truncated")

// Claim is an attempt that this node has leased, with everything that is needed to make the call.
type Claim struct {
	Call    Call
	Lease   Lease
	Target  media.Target
	Session pipeline.SessionConfig
	Record  bool
	// Dialer replaces the node's dialer; nil means the node's dialer.
	Dialer Dialer
	// Watcher also receives the events of the conversation; may be nil.
	Watcher pipeline.Observer
	// HangUp closes the connection of a web user who waits for the call. It runs before the result is written, because
	// writing may take long. May be nil.
	HangUp func()
	// OnEnd receives the result after it was written; may be nil.
	OnEnd func(CallResult)
	// NotAfter is the latest time at which the INVITE may leave, for example the end of calling hours. Zero means no
	// limit.
	NotAfter time.Time
	// Until is when the lease ends on this process's monotonic clock. It is never later than the end on the database's
	// clock.
	Until time.Time
}

// Queue is the dial queue.
type Queue interface {
	// Claim leases up to most attempts that may be dialed now, about as many of each subgroup.
	Claim(ctx context.Context, p NodeID, lease time.Duration, most int) ([]*Claim, error)
	// Due returns how long pacing blocks all queued attempts, but at most limit.
	Due(ctx context.Context, limit time.Duration) (time.Duration, error)
	// Renew extends the leases of these attempts, and returns the leases that the owner still holds.
	Renew(ctx context.Context, owner string, attempts []string, lease time.Duration) ([]Lease, error)
	// Settle ends the attempts whose leases expired, or returns them to the queue. It also ends attempts that waited
	// too long. It skips the attempts whose ids are in keep.
	Settle(ctx context.Context, keep []string) (int, error)
	// EndRequests returns the ids of the owner's calls that were asked to end.
	EndRequests(ctx context.Context, owner string) ([]string, error)
}

// AttemptStore stores the progress of an attempt. All methods return ErrFenced after the lease was lost.
type AttemptStore interface {
	// Intent commits that the INVITE is about to leave. It returns a *HaltError if the call must never be dialed, and
	// ErrStopped if it must not be dialed now.
	Intent(ctx context.Context, l Lease) error
	// Release returns an attempt to the queue. It may be called only if nothing was sent.
	Release(ctx context.Context, l Lease) error
	// Mark moves the attempt and its call to state s. It ignores a state that the attempt has passed already.
	Mark(ctx context.Context, l Lease, s AttemptState, at time.Time) error
	// Note stores lines and turns while the conversation goes on.
	Note(ctx context.Context, l Lease, n Notes) error
	// Finish ends the attempt and the call, and writes the transcript and the end event, in one transaction.
	Finish(ctx context.Context, l Lease, f CallResult) error
}

// Notes are some of the lines and turns of a running conversation.
type Notes struct {
	Lines []pipeline.Line
	Turns []pipeline.Turn
	// FirstLine and FirstTurn are the indexes of Lines[0] and Turns[0] in the conversation.
	FirstLine, FirstTurn int
	// Begins makes the call ongoing if it is not yet. It is set for web calls.
	Begins bool
}

// CallResult is the result of a call.
type CallResult struct {
	Status    Status
	Reason    Reason
	HangupBy  Side
	SIPStatus int
	SIPReason string

	DialedAt, RingingAt, AnsweredAt, EndedAt time.Time

	Recording RecordingStatus
	Truncated bool // the recording contains only the beginning of the call
	Lines     []pipeline.Line
	Turns     []pipeline.Turn
	Quality   json.RawMessage // JSON of an AudioQuality; nil if not measured
	Usage     json.RawMessage // JSON of a []pipeline.EngineUsage; nil without a conversation
	Transfer  json.RawMessage // JSON of the last transfer; nil if there was none
	// TransferLegs are the answered transfer legs. They end with the call.
	TransferLegs []AnsweredLeg

	AnsweredBy string          // empty if not determined
	AMD        json.RawMessage // how AnsweredBy was determined; may be nil
}
