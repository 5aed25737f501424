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

func TestFinalTry(t *testing.T) {
	refused := func(status int) error {
		return fmt.Errorf("model: openai: %w", &pipeline.RefusedError{Status: status, Text: "key sk-1 of http://10.0.0.7"})
	}
	for name, tt := range map[string]struct {
		err    error
		tries  int // number of tries until the result is final
		reason string
	}{
		"unusable answer":      {fmt.Errorf("%w: custom.kind", pipeline.ErrUnusable), 3, "unreadable answer"},
		"unknown model":        {refused(404), 3, "refused 404"},
		"wrong key":            {refused(401), 12, "refused 401"},
		"overloaded":           {refused(503), 12, "refused 503"},
		"rate-limited":         {refused(429), 12, "refused 429"},
		"unreachable":          {errors.New("dial tcp 10.0.0.7:443: connection refused"), 12, "unreachable"},
		"timeout":              {fmt.Errorf("model: %w", context.DeadlineExceeded), 12, "timed out"},
		"network timeout":      {os.ErrDeadlineExceeded, 12, "timed out"},
		"no first token":       {provider.ErrSlow, 12, "timed out"},
		"open circuit breaker": {fmt.Errorf("openai: %w", provider.ErrOpen), 21, "unreachable"},
		"busy":                 {fmt.Errorf("openai: %w", provider.ErrBusy), 21, "unreachable"},
		"two causes":           {errors.Join(provider.ErrOpen, refused(503)), 21, "refused 503"},
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
