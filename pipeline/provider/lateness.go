package provider

import (
	"runtime"
	"sync"
	"time"
)

const (
	probeEvery = 25 * time.Millisecond
	slotLength = 250 * time.Millisecond
	slotCount  = 8 // 8 slots of 250 ms: a window of 2 s
	// noise is the timer delay of a machine with free processors.
	noise = 10 * time.Millisecond
	// excuse is the lateness within the window that excuses a missed timeout.
	excuse = 200 * time.Millisecond
)

// lateness measures how late this process runs, for example because no processor is free, the process was stopped, or
// garbage is collected. While requests are active, a timer fires every probeEvery. If it fires late, the process also
// reads responses late. The zero value is ready to use.
type lateness struct {
	mu       sync.Mutex
	requests int // number of active requests
	due      time.Time
	timer    *time.Timer
	slots    [slotCount]lateSlot
}

// A lateSlot is the lateness measured in one slotLength.
type lateSlot struct {
	number int64
	late   time.Duration
}

func (l *lateness) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests++; l.requests > 1 {
		return
	}
	l.due = time.Now().Add(probeEvery)
	if l.timer == nil {
		l.timer = time.AfterFunc(probeEvery, l.probe)
	} else {
		l.timer.Reset(probeEvery)
	}
}

func (l *lateness) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests--; l.requests == 0 {
		l.timer.Stop()
	}
}

// probe records its delay and sets the next timer.
func (l *lateness) probe() {
	runtime.Gosched() // timer goroutines run before others; yield, to be as late as a goroutine that reads a socket
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests == 0 {
		return
	}
	now := time.Now()
	l.note(now.Sub(l.due), now)
	l.due = now.Add(probeEvery)
	l.timer.Reset(probeEvery)
}

// note adds a delay. The caller holds mu.
func (l *lateness) note(late time.Duration, now time.Time) {
	if late < noise {
		return
	}
	n := now.UnixNano() / int64(slotLength)
	s := &l.slots[n%slotCount]
	if s.number != n {
		*s = lateSlot{number: n}
	}
	s.late += late
}

// excuses reports whether this process ran so late in the last 2 s that a missed timeout
// says nothing about the provider.
func (l *lateness) excuses(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := time.Duration(0)
	if overdue := now.Sub(l.due); l.requests > 0 && overdue >= noise { // the timer is late and has not fired yet
		sum = overdue
	}
	oldest := now.UnixNano()/int64(slotLength) - slotCount
	for _, s := range l.slots {
		if s.number > oldest {
			sum += s.late
		}
	}
	return sum >= excuse
}
