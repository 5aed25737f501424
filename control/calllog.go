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
			lost = j.retry(ctx, lost, &at)
			err := j.writeEntry(ctx, *e, &at)
			if err != nil {
				j.log.WarnContext(ctx, "failed to write call progress; retrying", "err", err)
			}
			if e.state != "" {
				lost = nil // this state replaces an earlier state that is not written yet
				if err != nil {
					lost = e
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

// retry writes lost again, a state whose write failed. It returns lost if the write fails again, and nil otherwise. If
// lost is nil, it does nothing.
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
		return nil // no retry: lease renewal ends a fenced call, and Finish writes what a closing log drops
	}
	return err
}
