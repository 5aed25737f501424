// Package wait lets time pass, unless a run ends first.
package wait

import (
	"context"
	"time"
)

// For lets d pass; it is false where ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
