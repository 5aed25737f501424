package api

import (
	"log/slog"
	"testing"
)

func TestLogLevel(t *testing.T) {
	for _, c := range []struct {
		route  string
		status int
		want   slog.Level
	}{
		{"/healthz", 200, slog.LevelDebug}, {"/readyz", 200, slog.LevelDebug}, {"/readyz", 503, slog.LevelInfo}, {"/v1/calls", 200, slog.LevelInfo},
	} {
		if got := logLevel(c.route, c.status); got != c.want {
			t.Errorf("%s %d: got %v, want %v", c.route, c.status, got, c.want)
		}
	}
}
