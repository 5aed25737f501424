package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// A journal writes down what happens in a call while it happens, behind a
// queue, so that neither the dialling nor the conversation waits for the
// database. What it loses the call's final transaction brings.
type journal struct {
	ledger Ledger
	lease  Lease
	log    *slog.Logger

	mu     sync.Mutex
	shut   bool
	queue  chan entry
	over   chan struct{}
	give   context.CancelFunc // gives up what is not written yet
	missed int
}

// An entry is a mark, a line or a turn.
type entry struct {
	state AttemptState
	at    time.Time
	line  *pipeline.Line
	turn  *pipeline.Turn
}

func openJournal(ctx context.Context, ledger Ledger, lease Lease, log *slog.Logger) *journal {
	j := &journal{ledger: ledger, lease: lease, log: log, queue: make(chan entry, 256), over: make(chan struct{})}
	ctx, j.give = context.WithCancel(context.WithoutCancel(ctx))
	go j.write(ctx)
	return j
}

// closeFor is how long a closing journal goes on writing. The final transaction
// brings the rest.
const closeFor = 2 * time.Second

// close returns when what was taken is written or given up.
func (j *journal) close() {
	j.mu.Lock()
	if !j.shut {
		j.shut = true
		close(j.queue)
	}
	j.mu.Unlock()
	late := time.AfterFunc(closeFor, j.give)
	<-j.over
	late.Stop()
	j.give()
}

// put never blocks. When the queue is full, which a database that hangs for
// minutes brings about, the entry is dropped: the final transaction writes
// times and conversation whole.
func (j *journal) put(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.shut {
		return
	}
	select {
	case j.queue <- e:
	default:
		j.missed++
	}
}

func (j *journal) mark(s AttemptState, at time.Time) { j.put(entry{state: s, at: at}) }

// Said implements pipeline.Watcher.
func (j *journal) Said(l pipeline.Line) { j.put(entry{line: &l}) }

// Turned implements pipeline.Watcher.
func (j *journal) Turned(t pipeline.Turn) { j.put(entry{turn: &t}) }

func (j *journal) write(ctx context.Context) {
	defer close(j.over)
	var lines, turns int
	for e := range j.queue {
		// A database that hangs must not keep the call from its end.
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		var err error
		switch {
		case e.line != nil:
			err = j.ledger.Note(short, j.lease, Notes{Lines: []pipeline.Line{*e.line}, FirstLine: lines})
			lines++
		case e.turn != nil:
			err = j.ledger.Note(short, j.lease, Notes{Turns: []pipeline.Turn{*e.turn}, FirstTurn: turns})
			turns++
		default:
			err = j.ledger.Mark(short, j.lease, e.state, e.at)
		}
		cancel()
		if errors.Is(err, ErrFenced) || ctx.Err() != nil {
			continue // the renewal of the lease ends the call; the end of the call has it all
		}
		if err != nil {
			j.log.WarnContext(ctx, "the call's journal lost an entry until the call's end", "err", err)
		}
	}
	if j.missed > 0 {
		j.log.WarnContext(ctx, "the call's journal overflowed", "entries", j.missed)
	}
}
