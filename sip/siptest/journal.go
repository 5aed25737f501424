package siptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

// An Entry is the result of one INVITE. An INVITE with credentials is an entry of
// its own; a retransmission is not.
type Entry struct {
	Invite

	Challenged bool
	Rang       bool
	Canceled   bool // a CANCEL arrived before the final response
	Answered   bool // a 200 was sent
	Acked      bool
	Pracks     int         // number of accepted PRACKs
	ReferTo    string      // Refer-To of the last REFER
	Status     int         // final status; 0 before it
	Cause      media.Cause // how the call ended; "" before its end
	Forked     media.Cause // how the call of the second phone ended
	RangAt     time.Time
	AnsweredAt time.Time
	EndedAt    time.Time
}

// A journal is a list of entries with change notification.
type journal struct {
	mu      sync.Mutex
	entries []*Entry
	changed chan struct{} // closed at the next change; nil if nobody waits
}

func (j *journal) add(in Invite) *Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &Entry{Invite: in}
	j.entries = append(j.entries, e)
	j.notify()
	return e
}

func (j *journal) update(e *Entry, change func(*Entry)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(e)
	j.notify()
}

// touch wakes waiters without a change to an entry.
func (j *journal) touch() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notify()
}

// notify must be called with j.mu held.
func (j *journal) notify() {
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

// snapshot must be called with j.mu held.
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
