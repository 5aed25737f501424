package guard

import (
	"context"
	"log/slog"
	"sync"

	"github.com/emiago/sipgo/sip"
)

// Library has what the SIP library logs for no endpoint in particular pass a
// Log too, on its way to slog.Default. The library has one such logger for the
// process and guards it by nothing: it is set once, and must be before anything
// else of the library is used. It may be called any number of times.
func Library() { setLibrary() }

//nolint:gochecknoglobals // what it sets is one for the process
var setLibrary = sync.OnceFunc(func() { sip.SetDefaultLogger(slog.New(NewLog(process{}))) })

// A process is the slog.Handler of slog.Default, whichever that is by now.
type process struct{}

// Enabled implements slog.Handler.
func (process) Enabled(ctx context.Context, level slog.Level) bool {
	return slog.Default().Handler().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (process) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (process) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slog.Default().Handler().WithAttrs(attrs)
}

// WithGroup implements slog.Handler.
func (process) WithGroup(name string) slog.Handler {
	return slog.Default().Handler().WithGroup(name)
}
