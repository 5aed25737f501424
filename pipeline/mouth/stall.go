package mouth

import (
	"context"
	"sync"
	"time"
)

// Stalls waits until the caller has heard all that there was of an utterance, and
// nothing more came for so long; or until ctx ends, and is false then.
func (u *Utterance) Stalls(ctx context.Context, after time.Duration) bool {
	tick := time.NewTicker(after / 6)
	defer tick.Stop()
	dry := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if dry += after / 6; u.Played() == 0 || u.Waiting() > 0 {
			dry = 0 // not begun, which others watch, or still being heard
		}
		if dry >= after {
			return true
		}
	}
}

// Guard has cut called, on a goroutine of wg, when an utterance stalls for so long.
// The returned function ends that, and tells whether it was called.
func (u *Utterance) Guard(ctx context.Context, wg *sync.WaitGroup, after time.Duration, cut func()) func() bool {
	ctx, cancel := context.WithCancel(ctx)
	stalled := make(chan bool, 1)
	wg.Go(func() {
		is := u.Stalls(ctx, after)
		if stalled <- is; is {
			cut()
		}
	})
	return sync.OnceValue(func() bool {
		cancel()
		return <-stalled
	})
}
