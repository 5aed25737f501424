package analysis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider"
)

func TestFailures(t *testing.T) {
	refused := func(status int) error {
		return fmt.Errorf("model: openai: %w", &pipeline.RefusedError{Status: status, Text: "key sk-1 of http://10.0.0.7"})
	}
	for name, tt := range map[string]struct {
		err    error
		tries  int // until the result is final
		reason string
	}{
		"the answer is of no use": {fmt.Errorf("%w: custom.kind", pipeline.ErrUnusable), 3, "unreadable answer"},
		"there is no such model":  {refused(404), 3, "refused 404"},
		"the key is wrong":        {refused(401), 12, "refused 401"},
		"it is overloaded":        {refused(503), 12, "refused 503"},
		"it is rate-limited":      {refused(429), 12, "refused 429"},
		"it is away":              {errors.New("dial tcp 10.0.0.7:443: connection refused"), 12, "unreachable"},
		"it takes too long":       {fmt.Errorf("model: %w", context.DeadlineExceeded), 12, "timed out"},
		"the network does":        {os.ErrDeadlineExceeded, 12, "timed out"},
		"it does not begin":       {provider.ErrSlow, 12, "timed out"},
		"it is left alone":        {fmt.Errorf("openai: %w", provider.ErrOpen), 21, "unreachable"},
		"it is busy":              {fmt.Errorf("openai: %w", provider.ErrBusy), 21, "unreachable"},
		"both are, in two ways":   {errors.Join(provider.ErrOpen, refused(503)), 21, "refused 503"},
	} {
		n := 0
		for !isFinalTry(tt.err, n) {
			n++
		}
		if n+1 != tt.tries || reason(tt.err) != tt.reason {
			t.Errorf("%s: final after %d tries, for %q; want %d, %q", name, n+1, reason(tt.err), tt.tries, tt.reason)
		}
	}
}
