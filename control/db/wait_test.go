package db_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db"
)

// logBuffer collects log output.
type logBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *logBuffer) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.all.String(), text)
}

// TestOpenWaits checks that Open waits for an unavailable database for a limited time, and that it does not wait if
// the database rejects the user or is permanently read-only.
func TestOpenWaits(t *testing.T) {
	dir := openDir(t)
	first := start(t, dir)
	url := first.URL("parley")
	wrong := strings.Replace(url, "dbname=parley", "dbname=nowhere", 1)
	began := time.Now()
	if _, err := db.Open(t.Context(), db.Config{URL: wrong, Wait: time.Hour}); err == nil || time.Since(began) > 30*time.Second {
		t.Errorf("a database that does not exist: %v after %v", err, time.Since(began))
	}
	first.Stop()
	if _, err := db.Open(t.Context(), db.Config{URL: url}); err == nil {
		t.Error("a database that is stopped is opened")
	}
	began = time.Now()
	if _, err := db.Open(t.Context(), db.Config{URL: url, Wait: time.Second}); err == nil || time.Since(began) < time.Second {
		t.Errorf("a database that stays away: %v after %v", err, time.Since(began))
	}
	log := &logBuffer{}
	opened := make(chan error, 1)
	go func() {
		d, err := db.Open(t.Context(), db.Config{URL: url, Wait: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil))})
		if err == nil {
			d.Close()
		}
		opened <- err
	}()
	eventually(t, func() bool { return log.has("waiting for the database") })
	start(t, dir)
	if err := <-opened; err != nil {
		t.Errorf("a database that comes: %v", err)
	}
}
