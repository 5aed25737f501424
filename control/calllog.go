package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// callLog writes the progress of a call to the database. It has a queue, so that neither dialing nor the conversation
// waits for the database. A state that could not be written is tried again. The transaction at the end of the call
// writes everything else.
type callLog struct {
	attempts AttemptStore
	lease    Lease
	web      bool                          // for a web call, the first line makes the call ongoing; set before the first entry
	onMove   func(AttemptState, time.Time) // called after each state; may be nil; set before the first mark
	log      *slog.Logger

	mu      sync.Mutex
	closed  bool
	queue   chan logEntry
	done    chan struct{}
	cancel  context.CancelFunc // drops the entries that are not written yet
	dropped int
}

// logEntry is a new state, a line or a turn.
type logEntry struct {
	state AttemptState
	at    time.Time
	line  *pipeline.Line
	turn  *pipeline.Turn
}

func openCallLog(ctx context.Context, attempts AttemptStore, lease Lease, log *slog.Logger) *callLog {
	j := &callLog{attempts: attempts, lease: lease, log: log, queue: make(chan logEntry, 256), done: make(chan struct{})}
	ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go j.write(ctx)
	return j
}

// logCloseTimeout bounds how long close waits for the remaining entries.
const logCloseTimeout = 2 * time.Second

// close returns when all entries are written, or after logCloseTimeout.
func (j *callLog) close() {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.queue)
	}
	j.mu.Unlock()
	late := time.AfterFunc(logCloseTimeout, j.cancel)
	<-j.done
	late.Stop()
	j.cancel()
}

// put adds an entry and never blocks. The queue is full only if the database hangs for minutes. The entry is then
// dropped, because the transaction at the end of the call writes all times and the transcript.
func (j *callLog) put(e logEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	select {
	case j.queue <- e:
	default:
		j.dropped++
	}
}

func (j *callLog) mark(s AttemptState, at time.Time) {
	if j.onMove != nil {
		j.onMove(s, at)
	}
	j.put(logEntry{state: s, at: at})
}

// OnLine implements pipeline.Observer.
func (j *callLog) OnLine(l pipeline.Line) { j.put(logEntry{line: &l}) }

// OnTurn implements pipeline.Observer.
func (j *callLog) OnTurn(t pipeline.Turn) { j.put(logEntry{turn: &t}) }

// retryDelay is the delay before an unwritten state is tried again. The next entry may trigger the retry earlier.
const retryDelay = 2 * time.Second

// write writes entries until the log is closed. It retries an unwritten state, because other nodes rely on states. It
// does not retry lines and turns, because the end of the call writes them again.
func (j *callLog) write(ctx context.Context) {
	defer close(j.done)
	var at logPosition
	var lost *logEntry
	for open := true; open; {
		var again <-chan time.Time
		if lost != nil {
			again = time.After(retryDelay)
		}
		select {
		case e, more := <-j.queue:
			if open = more; !more {
				break
			}
			lost = j.retry(ctx, lost, &at)
			err := j.writeEntry(ctx, e, &at)
			if err != nil {
				j.log.WarnContext(ctx, "failed to write call progress; retrying", "err", err)
			}
			if e.state != "" {
				lost = nil // this state replaces an earlier unwritten one
				if err != nil {
					lost = &e
				}
			}
		case <-again:
			lost = j.retry(ctx, lost, &at)
		}
	}
	if j.dropped > 0 {
		j.log.WarnContext(ctx, "call progress entries dropped: the queue is full", "entries", j.dropped)
	}
}

// retry writes a state again that could not be written before; nil means that there is none. It returns the state if
// the write fails again.
func (j *callLog) retry(ctx context.Context, lost *logEntry, at *logPosition) *logEntry {
	if lost == nil || j.writeEntry(ctx, *lost, at) == nil {
		return nil
	}
	return lost
}

// logPosition holds the indexes of the next line and the next turn.
type logPosition struct{ line, turn int }

// writeEntry writes an entry. It returns an error only if a retry may succeed.
func (j *callLog) writeEntry(ctx context.Context, e logEntry, at *logPosition) error {
	// A database that hangs must not delay the end of the call.
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	switch {
	case e.line != nil:
		err = j.attempts.Note(short, j.lease, Notes{Lines: []pipeline.Line{*e.line}, FirstLine: at.line, Begins: j.web})
		at.line++
	case e.turn != nil:
		err = j.attempts.Note(short, j.lease, Notes{Turns: []pipeline.Turn{*e.turn}, FirstTurn: at.turn, Begins: j.web})
		at.turn++
	default:
		err = j.attempts.Mark(short, j.lease, e.state, e.at)
	}
	if err == nil || errors.Is(err, ErrFenced) || ctx.Err() != nil {
		return nil // no retry: renewing the leases ends a fenced call, and its result contains everything
	}
	return err
}
