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
	// maxTries limits the tries after an unusable answer or a refused request.
	maxTries = 3
	// outageWait limits the total time of retries while the provider fails.
	outageWait = 15 * time.Minute
	// busyWait limits the total time of retries while the provider is overloaded or its circuit breaker is open.
	busyWait = time.Hour
)

// isFinalTry reports whether a try that failed with err was the last one. before is the number of earlier tries.
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

// totalWait returns the sum of the waits after n tries.
func totalWait(n int) (all time.Duration) {
	for i := range min(n, 100) {
		all += control.Backoff(i)
	}
	return all
}

// reason describes the failure for the organization. The log has the details.
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
