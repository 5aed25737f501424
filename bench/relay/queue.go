package relay

import (
	"container/heap"
	"net"
	"net/netip"
	"sync"
	"time"
)

const queued = 1 << 16 // largest number of datagrams in flight

type datagram struct {
	due  time.Time
	n    int64 // order of datagrams that are due at the same time
	data []byte
	from *net.UDPConn
	to   netip.AddrPort
}

type byDue []datagram

func (q byDue) Len() int { return len(q) }

func (q byDue) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].n < q[j].n
	}
	return q[i].due.Before(q[j].due)
}
func (q byDue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *byDue) Push(x any) {
	if d, ok := x.(datagram); ok {
		*q = append(*q, d)
	}
}

func (q *byDue) Pop() any {
	last := len(*q) - 1
	d := (*q)[last]
	(*q)[last] = datagram{}
	*q = (*q)[:last]
	return d
}

// A queue sends datagrams when they are due.
type queue struct {
	mu    sync.Mutex
	heap  byDue
	count int64
	wake  chan struct{}
	done  chan struct{}
}

// add returns false if the queue is full. The datagram is then lost, as in a router.
func (q *queue) add(d datagram) bool {
	q.mu.Lock()
	if len(q.heap) >= queued {
		q.mu.Unlock()
		return false
	}
	q.count++
	d.n = q.count
	heap.Push(&q.heap, d)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // one wake-up is enough
	}
	return true
}

// next returns a due datagram, or the time until one is due.
func (q *queue) next(now time.Time) (datagram, time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.heap) == 0 {
		return datagram{}, time.Hour, false
	}
	if wait := q.heap[0].due.Sub(now); wait > 0 {
		return datagram{}, wait, false
	}
	d, ok := heap.Pop(&q.heap).(datagram)
	return d, 0, ok
}

// run sends until done is closed.
func (q *queue) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		d, wait, ok := q.next(time.Now())
		if ok {
			_, _ = d.from.WriteToUDPAddrPort(d.data, d.to) // an unreachable target counts as a loss
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-q.wake:
		case <-q.done:
			return
		}
	}
}
