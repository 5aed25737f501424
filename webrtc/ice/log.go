package ice

import (
	"fmt"
	"log/slog"
)

// leveled passes the library's log on. All of it is about strangers' packets, so
// all of it is for who debugs.
type leveled struct{ log *slog.Logger }

func (l leveled) tell(format string, args ...any) {
	if l.log.Enabled(nil, slog.LevelDebug) { //nolint:staticcheck // no context is known here
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

// Trace implements logging.LeveledLogger, as do those below.
func (l leveled) Trace(string)          {}
func (l leveled) Tracef(string, ...any) {}
func (l leveled) Debug(string)          {}
func (l leveled) Debugf(string, ...any) {}
func (l leveled) Info(msg string)       { l.tell("%s", msg) }
func (l leveled) Infof(format string, args ...any) {
	l.tell(format, args...)
}
func (l leveled) Warn(msg string) { l.tell("%s", msg) }
func (l leveled) Warnf(format string, args ...any) {
	l.tell(format, args...)
}
func (l leveled) Error(msg string) { l.tell("%s", msg) }
func (l leveled) Errorf(format string, args ...any) {
	l.tell(format, args...)
}
