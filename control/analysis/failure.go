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
	// tries is how often a model is asked that answers with nothing of use, or a
	// provider that refuses what it is asked for.
	tries = 3
	// outage is how long one is waited for that fails, and closed how long one
	// that is not asked at all, for it is busy or was left alone.
	outage = 15 * time.Minute
	closed = time.Hour
)

// final tells whether a try that failed was the last one, after so many before.
func final(err error, before int) bool {
	var refused *pipeline.RefusedError
	switch {
	case errors.Is(err, provider.ErrOpen), errors.Is(err, provider.ErrBusy):
		return waited(before) >= closed
	case errors.Is(err, pipeline.ErrUseless), errors.As(err, &refused) && refused.OfAsker():
		return before+1 >= tries
	}
	return waited(before) >= outage
}

// waited is how long n tries were waited for.
func waited(n int) (all time.Duration) {
	for i := range min(n, 100) {
		all += control.Backoff(i)
	}
	return all
}

// reason is what the organization is told of a failure; what it does not tell is
// the operator's own, and in the log.
func reason(err error) string {
	var refused *pipeline.RefusedError
	var network net.Error
	switch {
	case errors.Is(err, pipeline.ErrUseless):
		return "unreadable answer"
	case errors.As(err, &refused):
		return fmt.Sprintf("refused %d", refused.Status)
	case errors.Is(err, provider.ErrSlow), errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timed out"
	}
	return "unreachable"
}
