package mediaclock

import (
	"context"
	"time"
)

// A waiter waits for the ticks of a clock. Between ticks it reads packets.
type waiter struct {
	clock *Clock
	timer timer
	frame int // number of the frame of the last tick
	early int // number of times that packets may still wake the clock in this frame

	hooks   *[]*entry // hooks of the last tick
	sockets []*entry  // those that are Sockets
	fds     []int     // their descriptors
}

// wait waits for the next tick that has something to do, n or a later one, and returns it. With many streams that is always
// n. With few streams, wait reads packets when they arrive, else halfway between two ticks.
func (w *waiter) wait(ctx context.Context, n int, due time.Time) (int, time.Time) {
	w.findSockets()
	if frame := n / phases; frame != w.frame {
		w.frame, w.early = frame, 0
		if streams := int(w.clock.streams.Load()); streams <= fewStreams {
			w.early = streams // a stream usually receives one packet per frame
		}
	}
	if w.early == 0 || !w.timer.watch(w.fds) {
		w.timer.watch(nil)
		if half := due.Add(-Tick / 2); len(w.sockets) > 0 && time.Now().Before(half) {
			w.timer.wait(ctx, half)
			w.readPackets()
		}
		w.timer.wait(ctx, due)
		return n, due
	}
	skip := w.clock.idleTicks(n)
	for w.timer.wait(ctx, due.Add(time.Duration(skip)*Tick)) {
		w.readPackets()
		if w.early--; w.early == 0 { // bounds the wake-ups: further packets wait for the next tick
			w.timer.watch(nil)
			skip = min(skip, max(0, int((time.Since(due)+Tick-1)/Tick)))
		}
	}
	return n + skip, due.Add(time.Duration(skip) * Tick)
}

// findSockets updates the sockets after hooks were added or removed.
func (w *waiter) findSockets() {
	hooks := w.clock.hooks.Load()
	if hooks == w.hooks {
		return
	}
	w.timer.watch(nil) // a descriptor may have been closed and used again
	w.hooks, w.sockets, w.fds = hooks, w.sockets[:0], w.fds[:0]
	for _, e := range *hooks {
		if e.sockets != nil {
			w.sockets, w.fds = append(w.sockets, e), append(w.fds, e.sockets.FD())
		}
	}
}

func (w *waiter) readPackets() {
	now := time.Now()
	for _, e := range w.sockets {
		e.call(now)
	}
}
