package guard

import (
	"context"
	"log/slog"
	"sync"

	"github.com/emiago/sipgo/sip"
)

// Library sets what the SIP library has one of for the process and guards by
// nothing, once: it must be before anything else of the library is used. What
// the library logs for no endpoint in particular passes a Log too, on its way to
// slog.Default, and responses over UDP may be as long as a datagram can be. It
// may be called any number of times.
func Library() { setLibrary() }

//nolint:gochecknoglobals // what it sets is one for the process
var setLibrary = sync.OnceFunc(func() {
	sip.SetDefaultLogger(slog.New(NewLog(process{})))
	// A response goes where its request came from, however long it is: the
	// bound of a datagram is the requests' (RFC 3261 section 18.1.1), and an
	// endpoint holds its own to it.
	sip.UDPMTUSize = 65507
})

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
