package guard

import (
	"maps"
	"sync"
)

// Counts are what came in and was not served, by reason, since the start.
type Counts struct {
	// Dropped are datagrams that could not be SIP of a sane size, and streams
	// that were closed for the same.
	Dropped int64
	// Unreadable are messages that looked like SIP and could not be parsed.
	Unreadable int64
	// Limited are messages of addresses that sent too many.
	Limited int64
	// Unaccepted are the times that no connection could be accepted, as where
	// the process is out of files.
	Unaccepted int64
	// Refused are requests that were answered by the guard, by status.
	Refused map[int]int64
}

// A tally counts refusals by status.
type tally struct {
	mu sync.Mutex
	by map[int]int64
}

func (t *tally) add(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[int]int64{}
	}
	t.by[status]++
}

func (t *tally) copy() map[int]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.by)
}
