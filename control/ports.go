package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Dialer dials phones. ctx ends the dialing only. An error tells why no leg was established (*media.DialError if
// known). progress may be called from any goroutine before Dial returns. No INVITE leaves after to.NotAfter: the call
// then fails with media.ErrTooLate, and with media.ErrPaused while the carrier asked for a pause; neither reports
// media.Sent.
type Dialer interface {
	Dial(ctx context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error)
}

// Talker holds the conversation on a leg. Talk returns when the leg or the context has ended.
type Talker interface {
	Talk(ctx context.Context, leg media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error)
}

// Recorder records legs. Record returns a leg whose audio in both directions is recorded.
type Recorder interface {
	Record(callID string, leg media.Leg) (media.Leg, Recording, error)
}

// Recording is a recording in progress.
type Recording interface {
	// Close finishes the recording and returns its file, "" if it is empty. With
	// ErrTruncated the file holds only the beginning.
	Close() (path string, err error)
}

// ErrTruncated is returned if the rest of a recording could not be written.
var ErrTruncated = errors.New("recording is truncated")

// Claim is an attempt that this node has to make, with everything needed for it.
type Claim struct {
	Call    Call
	Lease   Lease
	Target  media.Target
	Session pipeline.SessionConfig
	Record  bool
	// Dialer replaces the node's dialer; may be nil.
	Dialer Dialer
	// Watcher also receives the events of the conversation; may be nil.
	Watcher pipeline.Observer
	// HangUp ends a connection that exists already if the call is not dialed. It runs
	// before the result is written, which may take long. May be nil.
	HangUp func()
	// OnEnd receives the result after it is written; may be nil.
	OnEnd func(CallResult)
	// NotAfter is the latest time to send the request, such as the end of calling hours; zero means no limit.
	NotAfter time.Time
	// Until is the end of the lease on this process's monotonic clock, never later than on the database's clock.
	Until time.Time
}

// Queue is the dial queue.
type Queue interface {
	// Claim leases up to most attempts that may be dialed now, one per subgroup.
	Claim(ctx context.Context, p NodeID, lease time.Duration, most int) ([]*Claim, error)
	// Due returns how long pacing blocks all queued attempts, at most limit.
	Due(ctx context.Context, limit time.Duration) (time.Duration, error)
	// Renew extends the leases of the named attempts and returns those still held.
	Renew(ctx context.Context, owner string, attempts []string, lease time.Duration) ([]Lease, error)
	// Settle ends or reschedules attempts with lapsed leases and expires those that
	// waited too long. It skips the attempts in keep.
	Settle(ctx context.Context, keep []string) (int, error)
	// EndRequests returns the owner's calls that were asked to end.
	EndRequests(ctx context.Context, owner string) ([]string, error)
}

// AttemptStore stores the progress of an attempt. All methods fail with ErrFenced after the lease is lost.
type AttemptStore interface {
	// Intent commits that the request is about to leave. It returns a *HaltError if the
	// call must not be dialed, and ErrStopped if it must not be dialed now.
	Intent(ctx context.Context, l Lease) error
	// Release returns an attempt to the queue if nothing was sent.
	Release(ctx context.Context, l Lease) error
	// Mark advances the attempt and its call. A state that was passed already is ignored.
	Mark(ctx context.Context, l Lease, s AttemptState, at time.Time) error
	// Note stores lines and turns during the call.
	Note(ctx context.Context, l Lease, n Notes) error
	// Finish ends attempt and call and writes the transcript and the end event in one transaction.
	Finish(ctx context.Context, l Lease, f CallResult) error
}

// Notes are some lines and turns of a running conversation.
type Notes struct {
	Lines []pipeline.Line
	Turns []pipeline.Turn
	// FirstLine and FirstTurn are the indexes of the first ones.
	FirstLine, FirstTurn int
	// Begins makes the call ongoing, as for the first line of a web call.
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
	Truncated bool // only the beginning of the call was recorded
	Lines     []pipeline.Line
	Turns     []pipeline.Turn
	Quality   json.RawMessage // an AudioQuality; nil if not measured
	Usage     json.RawMessage // a list of pipeline.EngineUsage; nil without a conversation
	Transfer  json.RawMessage // the last transfer; nil for none

	AnsweredBy string          // empty if not determined
	AMD        json.RawMessage // its basis, or nil
}
