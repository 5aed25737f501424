package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// A Dialer reaches phones. The context ends the dialling, and nothing after
// it; an error says why no leg came to be (*media.DialError where it knows).
// Progress is reported from any goroutine before Dial returns. No request leaves
// after to.NotAfter; one that came too late fails with media.ErrTooLate, without
// media.Sent where nothing of it has left.
type Dialer interface {
	Dial(ctx context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error)
}

// A Talker holds the conversation on a leg. It returns when all is over: the
// leg ended, or the context did.
type Talker interface {
	Talk(ctx context.Context, leg media.Leg, b pipeline.Brief) (pipeline.Outcome, error)
}

// A Taper records legs. What is said on the leg it returns is on the tape.
type Taper interface {
	Tape(callID string, leg media.Leg) (media.Leg, Tape, error)
}

// A Tape is one recording under way.
type Tape interface {
	// Close finishes the recording and returns its file. It returns "" where
	// there is nothing in it.
	Close() (path string, err error)
}

// A Claim is an attempt that this node is to make, and all it needs for it.
type Claim struct {
	Call   Call
	Lease  Lease
	Target media.Target
	Brief  pipeline.Brief
	Record bool
	// Dialer, where set, opens the line in place of the node's.
	Dialer Dialer
	// Watch, where set, is told of the conversation too.
	Watch pipeline.Watcher
	// Drop, where set, hangs up who is on the line already, should it not be dialled;
	// it is called before the end is written, which may take long.
	Drop func()
	// Over, where set, is told of the call's end, once it is written.
	Over func(Final)
	// NotAfter, where set, is the moment after which the request must not leave: the
	// hours in which it may end, say.
	NotAfter time.Time
	// Until is when the lease lapses, on this process's monotonic clock and
	// never later than on the database's.
	Until time.Time
}

// A Queue is the dial queue.
type Queue interface {
	// Claim takes attempts that may be dialled now, at most so many and one a
	// subgroup; none where there is none.
	Claim(ctx context.Context, p Place, lease time.Duration, most int) ([]*Claim, error)
	// Due returns how long it takes until a queued attempt may be claimed for
	// all that the pacing says, at most limit.
	Due(ctx context.Context, limit time.Duration) (time.Duration, error)
	// Renew prolongs the leases of the attempts named and returns those that
	// are still the owner's.
	Renew(ctx context.Context, owner string, attempts []string, lease time.Duration) ([]Lease, error)
	// Settle ends or reschedules what nodes left behind whose leases lapsed,
	// and expires what waited too long. It leaves the attempts named alone.
	Settle(ctx context.Context, keep []string) (int, error)
	// ToEnd returns which of the owner's calls were asked to end.
	ToEnd(ctx context.Context, owner string) ([]string, error)
}

// A Ledger is where a node writes down what happens to its attempt. All of it
// fails with ErrFenced once the attempt is not the node's any more.
type Ledger interface {
	// Intent commits that the request is about to leave. It returns a *HaltError
	// where the call must not be dialled after all, and ErrStopped where it must
	// not be dialled now.
	Intent(ctx context.Context, l Lease) error
	// Release gives an attempt back to the queue of which nothing has left.
	Release(ctx context.Context, l Lease) error
	// Mark moves the attempt on, and its call with it. A state that was passed
	// already is no error.
	Mark(ctx context.Context, l Lease, s AttemptState, at time.Time) error
	// Note keeps lines and turns as they come.
	Note(ctx context.Context, l Lease, n Notes) error
	// Finish ends attempt and call, writes the whole conversation and the
	// event of the end, in one transaction.
	Finish(ctx context.Context, l Lease, f Final) error
}

// Notes are some lines and turns of a conversation that goes on.
type Notes struct {
	Lines []pipeline.Line
	Turns []pipeline.Turn
	// FirstLine and FirstTurn are the places of the first ones.
	FirstLine, FirstTurn int
	// Begins says that the call is ongoing from now on, as web calls are from their
	// first words.
	Begins bool
}

// A Final is how a call ended.
type Final struct {
	Status    Status
	Reason    Reason
	HangupBy  Side
	SIPStatus int
	SIPReason string

	DialedAt, RingingAt, AnsweredAt, EndedAt time.Time

	Recording RecordingStatus
	Lines     []pipeline.Line
	Turns     []pipeline.Turn
	Quality   json.RawMessage // a quality.Quality; nil where nobody measured
	Transfer  json.RawMessage // the handing over that was tried last; nil where none was

	AnsweredBy string          // empty where nobody looked
	AMD        json.RawMessage // how that is known; nil likewise
}
