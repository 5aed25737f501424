package sanitize

import (
	"context"
	"log/slog"
	"sync"

	"github.com/emiago/sipgo/sip"
)

// ConfigureLibrary sets the global variables of the SIP library, once. Call it
// before any other use of the library, which does not guard them. Its default
// logger then writes to slog.Default through a LogHandler. It may be called
// again.
func ConfigureLibrary() { configureLibrary() }

//nolint:gochecknoglobals // what it sets is one for the process
var configureLibrary = sync.OnceFunc(func() {
	sip.SetDefaultLogger(slog.New(NewLogHandler(defaultHandler{})))
	// A response must go to the source of its request at any length: the limit of
	// RFC 3261 section 18.1.1 is for requests, and endpoint enforces it.
	sip.UDPMTUSize = 65507
})

// A defaultHandler is a slog.Handler that forwards to the current slog.Default.
type defaultHandler struct{}

func (defaultHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return slog.Default().Handler().Enabled(ctx, level)
}

func (defaultHandler) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}

func (defaultHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slog.Default().Handler().WithAttrs(attrs)
}

func (defaultHandler) WithGroup(name string) slog.Handler {
	return slog.Default().Handler().WithGroup(name)
}
