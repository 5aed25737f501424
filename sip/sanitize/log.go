package sanitize

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// parseLogInterval is the time between log entries about parse failures.
const parseLogInterval = 10 * time.Second

// A LogHandler is a slog.Handler for the SIP library. It forwards warnings and
// errors without SIP messages, masks long numbers, and logs parse failures at
// most every 10 s.
type LogHandler struct {
	next     slog.Handler
	failures *parseFailures
}

type parseFailures struct {
	count, logged atomic.Int64 // number of all failures, and of those in the log
	loggedAt      atomic.Int64 // when the last failure was logged, in Unix nanoseconds
}

// NewLogHandler returns a handler that forwards to next.
func NewLogHandler(next slog.Handler) *LogHandler { return &LogHandler{next, &parseFailures{}} }

// Unreadable returns the number of parse failures.
func (l *LogHandler) Unreadable() int64 { return l.failures.count.Load() }

// Enabled implements slog.Handler. It counts records that next does not want,
// too.
func (l *LogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle implements slog.Handler.
func (l *LogHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, mask(r.Message), r.PC)
	if strings.Contains(r.Message, "failed to parse") {
		n, last := l.failures.count.Add(1), l.failures.loggedAt.Load()
		if r.Time.UnixNano()-last < int64(parseLogInterval) || !l.failures.loggedAt.CompareAndSwap(last, r.Time.UnixNano()) {
			return nil
		}
		out.Level = slog.LevelWarn
		out.AddAttrs(slog.Int64("messages", n-l.failures.logged.Swap(n)))
	}
	r.Attrs(func(a slog.Attr) bool {
		if safe, keep := clean(a); keep {
			out.AddAttrs(safe)
		}
		return true
	})
	if !l.next.Enabled(ctx, out.Level) {
		return nil
	}
	return l.next.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (l *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var kept []slog.Attr
	for _, a := range attrs {
		if safe, keep := clean(a); keep {
			kept = append(kept, safe)
		}
	}
	return &LogHandler{l.next.WithAttrs(kept), l.failures}
}

// WithGroup implements slog.Handler.
func (l *LogHandler) WithGroup(name string) slog.Handler {
	return &LogHandler{l.next.WithGroup(name), l.failures}
}

// clean drops attributes with messages or parts of them, and masks others.
func clean(a slog.Attr) (slog.Attr, bool) {
	switch a.Key {
	case "data", "req", "res", "msg", "invite_request", "invite_response", "cancel_request", "callid":
		return a, false
	}
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString, slog.KindAny:
		text := v.String()
		if strings.ContainsAny(text, "\r\n") || strings.Contains(text, "SIP/2.0") || strings.Contains(strings.ToLower(text), "authorization") {
			return slog.String(a.Key, "[message]"), true
		}
		return slog.String(a.Key, mask(text)), true
	case slog.KindGroup:
		return a, false
	default:
		return a, true
	}
}

// mask reduces numbers of six or more digits to their last two.
func mask(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		switch {
		case n == 0:
			b.WriteByte(text[0])
			n = 1
		case n >= 6:
			b.WriteString("…" + text[n-2:n])
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}
