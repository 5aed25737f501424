package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// callLog writes the states, lines and turns of a call to the database. It writes them in the background, so that
// neither dialing nor the conversation waits for the database. It retries only states. AttemptStore.Finish writes all
// lines and turns again.
type callLog struct {
	attempts AttemptStore
	lease    Lease
	web      bool                          // the call is a web call, so its first line or turn makes it ongoing; set before the first entry
	onMove   func(AttemptState, time.Time) // called for each new state; may be nil; set before the first call of mark
	log      *slog.Logger

	mu      sync.Mutex
	closed  bool
	queue   chan *logEntry
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
	j := &callLog{attempts: attempts, lease: lease, log: log, queue: make(chan *logEntry, 256), done: make(chan struct{})}
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

// put adds an entry and never blocks. If the queue is full, because the database has hung for minutes, put drops the
// entry. AttemptStore.Finish writes all times and the transcript anyway.
func (j *callLog) put(e logEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	select {
	case j.queue <- &e:
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

// retryDelay is the delay before the write of a state is retried. A new entry triggers the retry earlier.
const retryDelay = 2 * time.Second

// write writes entries until the log is closed. It retries states, because other nodes rely on them. It does not retry
// lines and turns, because AttemptStore.Finish writes them again.
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
			lost = j.retry(ctx, lost)
			if e.state == "" {
				e, open = j.writeNotes(ctx, e, &at)
			}
			if e != nil {
				lost = j.retry(ctx, e) // this state replaces an earlier state that is not written yet
			}
		case <-again:
			lost = j.retry(ctx, lost)
		}
	}
	if j.dropped > 0 {
		j.log.WarnContext(ctx, "call progress entries dropped: the queue is full", "entries", j.dropped)
	}
}

// retry writes a state. It returns the state if it must be written again, and nil otherwise. If lost is nil, it does
// nothing.
func (j *callLog) retry(ctx context.Context, lost *logEntry) *logEntry {
	if lost == nil || j.written(ctx, func(ctx context.Context) error { return j.attempts.Mark(ctx, j.lease, lost.state, lost.at) }) {
		return nil
	}
	return lost
}

// logPosition holds the indexes of the next line and the next turn.
type logPosition struct{ line, turn int }

// writeNotes writes the line or turn e, with the lines and turns that follow it in the queue. It returns the state that
// follows them, if there is one, and false if the queue was closed.
func (j *callLog) writeNotes(ctx context.Context, e *logEntry, at *logPosition) (state *logEntry, open bool) {
	n := Notes{FirstLine: at.line, FirstTurn: at.turn, Begins: j.web}
	for open = true; open && state == nil && e != nil; {
		switch {
		case e.line != nil:
			n.Lines = append(n.Lines, *e.line)
		case e.turn != nil:
			n.Turns = append(n.Turns, *e.turn)
		default:
			state = e
			continue
		}
		select {
		case e, open = <-j.queue:
		default:
			e = nil
		}
	}
	at.line, at.turn = at.line+len(n.Lines), at.turn+len(n.Turns)
	j.written(ctx, func(ctx context.Context) error { return j.attempts.Note(ctx, j.lease, n) })
	return state, open
}

// written reports whether do succeeded, or failed in a way that makes a retry useless.
func (j *callLog) written(ctx context.Context, do func(context.Context) error) bool {
	if ctx.Err() != nil {
		return true // Finish writes what a closing log drops
	}
	// A database that hangs must not delay the end of the call.
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := do(short)
	if err == nil || errors.Is(err, ErrFenced) || ctx.Err() != nil {
		return true // lease renewal ends a fenced call
	}
	j.log.WarnContext(ctx, "failed to write call progress", "err", err)
	return false
}
