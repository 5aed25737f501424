package mouth

import (
	"context"
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
