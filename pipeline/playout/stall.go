package playout

import (
	"context"
	"sync"
	"time"
)

// WaitStall waits until the caller has heard all available audio of an utterance and no more audio has come for the
// given time. It returns false if ctx ends first.
func (u *Utterance) WaitStall(ctx context.Context, after time.Duration) bool {
	tick := time.NewTicker(after / 6)
	defer tick.Stop()
	dry := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if dry += after / 6; u.Played() == 0 || u.Buffered() > 0 {
			dry = 0 // the utterance has not started, or is still playing
		}
		if dry >= after {
			return true
		}
	}
}

// WatchStall runs cut, on a goroutine of wg, if an utterance stalls for the given time.
// The returned function stops the watch and reports whether cut was called.
func (u *Utterance) WatchStall(ctx context.Context, wg *sync.WaitGroup, after time.Duration, cut func()) func() bool {
	ctx, cancel := context.WithCancel(ctx)
	stalled := make(chan bool, 1)
	wg.Go(func() {
		is := u.WaitStall(ctx, after)
		if stalled <- is; is {
			cut()
		}
	})
	return sync.OnceValue(func() bool {
		cancel()
		return <-stalled
	})
}
