package ice

import (
	"fmt"
	"log/slog"
)

// leveled logs pion's messages at debug level, because remote packets cause them.
type leveled struct{ log *slog.Logger }

func (l leveled) debug(format string, args ...any) {
	if l.log.Enabled(nil, slog.LevelDebug) { //nolint:staticcheck // no context is available
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

func (l leveled) Trace(string)          {}
func (l leveled) Tracef(string, ...any) {}
func (l leveled) Debug(string)          {}
func (l leveled) Debugf(string, ...any) {}
func (l leveled) Info(msg string)       { l.debug("%s", msg) }
func (l leveled) Infof(format string, args ...any) {
	l.debug(format, args...)
}
func (l leveled) Warn(msg string) { l.debug("%s", msg) }
func (l leveled) Warnf(format string, args ...any) {
	l.debug(format, args...)
}
func (l leveled) Error(msg string) { l.debug("%s", msg) }
func (l leveled) Errorf(format string, args ...any) {
	l.debug(format, args...)
}
