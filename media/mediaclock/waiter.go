package mediaclock

import (
	"context"
	"time"
)

// A waiter waits for the ticks of a clock.
type waiter struct {
	clock *Clock
	timer timer
	frame int // number of the frame of the last tick
	early int // number of times that packets may still wake the clock in this frame

	sockets []*entry // hooks that are watched
	fds     []int    // their descriptors
}

// wait waits until tick n is due, or until a later tick is if there are few streams and tick n has nothing to do. It
// returns that tick. Meanwhile it reads the packets that arrive.
func (w *waiter) wait(ctx context.Context, n int, due time.Time) (int, time.Time) {
	if frame := n / phases; frame != w.frame {
		w.frame, w.early = frame, 0
		if streams := int(w.clock.streams.Load()); streams <= fewStreams {
			w.early = streams // a stream usually receives one packet per frame
		}
	}
	skip := 0
	if w.watch() {
		skip = w.clock.idleTicks(n)
	}
	for w.timer.wait(ctx, due.Add(time.Duration(skip)*Tick)) {
		now := time.Now()
		for _, e := range w.sockets {
			e.call(now)
		}
		if w.early--; w.early == 0 { // a flood of packets must not keep the clock awake: read the rest in each tick
			w.watch()
			skip = min(skip, max(0, int((now.Sub(due)+Tick-1)/Tick)))
		}
	}
	return n + skip, due.Add(time.Duration(skip) * Tick)
}

// watch makes packets wake the clock, or not if they have done so too often. It returns false if they do not.
func (w *waiter) watch() bool {
	w.sockets, w.fds = w.sockets[:0], w.fds[:0]
	if hooks := w.clock.hooks.Load(); hooks != nil && w.early > 0 {
		for _, e := range *hooks {
			if e.sockets != nil {
				w.sockets, w.fds = append(w.sockets, e), append(w.fds, e.sockets.FD())
			}
		}
	}
	return w.timer.watch(w.fds) && w.early > 0
}
