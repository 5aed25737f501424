package sanitize

import (
	"maps"
	"sync"
)

// Counts counts the messages that were not served since the start.
type Counts struct {
	// Dropped counts datagrams that are not SIP or too large, and streams closed
	// for the same reason.
	Dropped int64
	// Unreadable counts messages that could not be parsed.
	Unreadable int64
	// Limited counts messages above the rate limit.
	Limited int64
	// Foreign counts messages of calls from addresses outside the trunk.
	Foreign int64
	// Unaccepted counts failures to accept a connection, such as too many open
	// files.
	Unaccepted int64
	// Refused counts requests refused by Rules or admission, by status.
	Refused map[int]int64
}

type statusCounter struct {
	mu sync.Mutex
	by map[int]int64
}

func (t *statusCounter) add(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[int]int64{}
	}
	t.by[status]++
}

func (t *statusCounter) copy() map[int]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.by)
}
