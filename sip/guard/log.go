package guard

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// quietFor is how long failures to parse are counted before the next is told.
const quietFor = 10 * time.Second

// A Log is a slog.Handler for the SIP library. It passes warnings and errors
// without the messages that the library puts into them, with numbers cut
// short, and tells of a flood of unreadable messages once in a while only.
type Log struct {
	next  slog.Handler
	flood *flood
}

type flood struct {
	count, told atomic.Int64 // failures so far; how many of them are told
	at          atomic.Int64 // of the last telling, Unix nanoseconds
}

// NewLog passes on to next.
func NewLog(next slog.Handler) *Log { return &Log{next, &flood{}} }

// Unreadable is how many messages could not be parsed.
func (l *Log) Unreadable() int64 { return l.flood.count.Load() }

// Enabled implements slog.Handler. What next does not want is counted too.
func (l *Log) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (l *Log) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, mask(r.Message), r.PC)
	if strings.Contains(r.Message, "failed to parse") {
		n, last := l.flood.count.Add(1), l.flood.at.Load()
		if r.Time.UnixNano()-last < int64(quietFor) || !l.flood.at.CompareAndSwap(last, r.Time.UnixNano()) {
			return nil
		}
		out.Level = slog.LevelWarn
		out.AddAttrs(slog.Int64("messages", n-l.flood.told.Swap(n)))
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
func (l *Log) WithAttrs(attrs []slog.Attr) slog.Handler {
	var kept []slog.Attr
	for _, a := range attrs {
		if safe, keep := clean(a); keep {
			kept = append(kept, safe)
		}
	}
	return &Log{l.next.WithAttrs(kept), l.flood}
}

// WithGroup implements slog.Handler.
func (l *Log) WithGroup(name string) slog.Handler { return &Log{l.next.WithGroup(name), l.flood} }

// clean drops what holds a message or a part of one, and masks the rest.
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

// mask cuts numbers of six digits and more down to their last two.
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
