package siptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

// An Entry is what became of one INVITE. An authenticated INVITE is an entry
// of its own; retransmissions are none.
type Entry struct {
	Invite

	Challenged bool
	Rang       bool
	Cancelled  bool // a CANCEL came, and in time
	Answered   bool // a 200 was sent
	Acked      bool
	Pracks     int         // PRACKs that acknowledged a reliable response
	ReferTo    string      // of the last REFER
	Status     int         // final, 0 before it
	Cause      media.Cause // how the call ended, "" before that
	Forked     media.Cause // how the call of the second phone ended
	RangAt     time.Time
	AnsweredAt time.Time
	EndedAt    time.Time
}

// A journal is a list of entries that can be waited upon.
type journal struct {
	mu      sync.Mutex
	entries []*Entry
	changed chan struct{} // closed at the next change; nil where nobody waits
}

func (j *journal) add(in Invite) *Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &Entry{Invite: in}
	j.entries = append(j.entries, e)
	j.tell()
	return e
}

// note changes an entry.
func (j *journal) note(e *Entry, change func(*Entry)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(e)
	j.tell()
}

// touch has waiters look again.
func (j *journal) touch() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tell()
}

// tell needs j.mu.
func (j *journal) tell() {
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

func (j *journal) copy() []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.snapshot()
}

// snapshot needs j.mu.
func (j *journal) snapshot() []Entry {
	all := make([]Entry, 0, len(j.entries))
	for _, e := range j.entries {
		all = append(all, *e)
	}
	return slices.Clip(all)
}

func (j *journal) wait(ctx context.Context, wanted func([]Entry) bool) error {
	for {
		j.mu.Lock()
		all := j.snapshot()
		if j.changed == nil {
			j.changed = make(chan struct{})
		}
		changed := j.changed
		j.mu.Unlock()
		if wanted(all) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("journal of %d entries: %w", len(all), ctx.Err())
		}
	}
}
