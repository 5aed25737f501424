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
// database. A mark that it loses it tries again; all else that it loses the
// call's final transaction brings.
type journal struct {
	ledger Ledger
	lease  Lease
	web    bool // the call begins with its first words; set before any come
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

// repeatAfter is how long a mark that was lost waits for something else to be
// written, before it is tried again by itself.
const repeatAfter = 2 * time.Second

// write takes what is put until the journal is closed. A mark that was lost is
// tried again, since until it is written others do not know where the call
// stands; lines and turns come again with the call's end.
func (j *journal) write(ctx context.Context) {
	defer close(j.over)
	var at places
	var lost *entry
	for open := true; open; {
		var again <-chan time.Time
		if lost != nil {
			again = time.After(repeatAfter)
		}
		select {
		case e, more := <-j.queue:
			if open = more; !more {
				break
			}
			lost = j.repeat(ctx, lost, &at)
			err := j.one(ctx, e, &at)
			if err != nil {
				j.log.WarnContext(ctx, "the call's journal lost an entry for now", "err", err)
			}
			if e.state != "" {
				lost = nil // a later mark tells what an earlier one would have
				if err != nil {
					lost = &e
				}
			}
		case <-again:
			lost = j.repeat(ctx, lost, &at)
		}
	}
	if j.missed > 0 {
		j.log.WarnContext(ctx, "the call's journal overflowed", "entries", j.missed)
	}
}

// repeat tries a lost mark, which may be nil, and returns it if it is still lost.
func (j *journal) repeat(ctx context.Context, lost *entry, at *places) *entry {
	if lost == nil || j.one(ctx, *lost, at) == nil {
		return nil
	}
	return lost
}

// places are where the next line and the next turn stand.
type places struct{ line, turn int }

// one writes an entry. Its error is one that another try may mend.
func (j *journal) one(ctx context.Context, e entry, at *places) error {
	// A database that hangs must not keep the call from its end.
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	switch {
	case e.line != nil:
		err = j.ledger.Note(short, j.lease, Notes{Lines: []pipeline.Line{*e.line}, FirstLine: at.line, Begins: j.web})
		at.line++
	case e.turn != nil:
		err = j.ledger.Note(short, j.lease, Notes{Turns: []pipeline.Turn{*e.turn}, FirstTurn: at.turn, Begins: j.web})
		at.turn++
	default:
		err = j.ledger.Mark(short, j.lease, e.state, e.at)
	}
	if err == nil || errors.Is(err, ErrFenced) || ctx.Err() != nil {
		return nil // the renewal of the lease ends the call; the end of the call has it all
	}
	return err
}
