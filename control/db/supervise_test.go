package db_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/db"
)

// postmaster returns the process id of the Postgres whose data are in dir, or 0 if it does not run.
func postmaster(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		return 0
	}
	return pid
}

// kill kills the Postgres whose data are in dir, and returns its process id.
func kill(t *testing.T, dir string) int {
	t.Helper()
	pid := postmaster(dir)
	if pid == 0 {
		t.Fatal("there is no Postgres")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return pid
}

// eventually waits until a condition is true.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the condition is not true within 30 s")
		}
	}
}

// TestLocalRestartsPostgres checks that the owner starts Postgres again after each exit, also after a takeover, but
// not after Stop.
func TestLocalRestartsPostgres(t *testing.T) {
	dir := openDir(t)
	data := filepath.Join(dir, "postgres", "data")
	a := start(t, dir)
	b := start(t, dir)
	for _, sql := range []string{"CREATE TABLE kept ()", "CHECKPOINT"} { // Fast turns off flushing
		if err := query(t.Context(), a, sql); err != nil {
			t.Fatal(err)
		}
	}
	expectRestart := func(l *db.Local) {
		t.Helper()
		first := kill(t, data)
		eventually(t, func() bool { return query(t.Context(), l, "SELECT FROM kept") == nil && postmaster(data) != first })
	}
	expectRestart(a)
	expectRestart(a)
	a.Stop()
	eventually(t, func() bool { return query(t.Context(), b, "SELECT FROM kept") == nil })
	expectRestart(b)
	b.Stop()
	if err := query(t.Context(), b, "SELECT"); err == nil {
		t.Error("it answers after Stop")
	}
}

// TestLocalStopDuringOutage checks that Stop returns while Postgres cannot be started.
func TestLocalStopDuringOutage(t *testing.T) {
	dir := openDir(t)
	a := start(t, dir)
	// Without its data, Postgres cannot start.
	data := filepath.Join(dir, "postgres", "data")
	if err := os.Rename(data, data+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kill(t, data+".away")
	began := time.Now()
	a.Stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Stop took %v", took)
	}
}
