package analysis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider"
)

const (
	// maxTries bounds tries after useless answers or refused requests.
	maxTries = 3
	// outageWait bounds the retries while the provider fails, is busy, or is not used because of earlier failures.
	outageWait = 15 * time.Minute
	busyWait   = time.Hour
)

// isFinalTry reports whether the failed try was the last, after before earlier ones.
func isFinalTry(err error, before int) bool {
	var refused *pipeline.RefusedError
	switch {
	case errors.Is(err, provider.ErrOpen), errors.Is(err, provider.ErrBusy):
		return totalWait(before) >= busyWait
	case errors.Is(err, pipeline.ErrUnusable), errors.As(err, &refused) && refused.IsRequestFault():
		return before+1 >= maxTries
	}
	return totalWait(before) >= outageWait
}

// totalWait returns the sum of the waits of n tries.
func totalWait(n int) (all time.Duration) {
	for i := range min(n, 100) {
		all += control.Backoff(i)
	}
	return all
}

// reason is the failure as shown to the organization; details go to the log.
func reason(err error) string {
	var refused *pipeline.RefusedError
	var network net.Error
	switch {
	case errors.Is(err, pipeline.ErrUnusable):
		return "unreadable answer"
	case errors.As(err, &refused):
		return fmt.Sprintf("refused %d", refused.Status)
	case errors.Is(err, provider.ErrSlow), errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timed out"
	}
	return "unreachable"
}
