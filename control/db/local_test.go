package db_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
)

// openDir returns a folder that the Postgres account may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "parley-local-") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, dir string) *db.Local {
	t.Helper()
	l := &db.Local{Dir: dir, Fast: true}
	t.Cleanup(l.Stop)
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

func query(ctx context.Context, l *db.Local, sql string) error {
	c, err := pgx.Connect(ctx, l.URL("parley"))
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, sql)
	return errors.Join(err, c.Close(ctx))
}

// TestLocalKeepsData checks that the data survive a stop and a kill, and that a long path works.
func TestLocalKeepsData(t *testing.T) {
	dir := filepath.Join(openDir(t), strings.Repeat("long", 25))
	a := start(t, dir)
	if err := query(t.Context(), a, "CREATE TABLE kept ()"); err != nil {
		t.Fatal(err)
	}
	a.Stop()
	a.Stop()
	if err := query(t.Context(), a, "SELECT"); err == nil {
		t.Fatal("it answers after Stop")
	}
	b := start(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.Stop()
	if err := query(t.Context(), start(t, dir), "SELECT FROM kept"); err != nil {
		t.Errorf("after a kill: %v", err)
	}
}

// TestLocalTakeover opens the same data directory twice, as a server and a command would.
func TestLocalTakeover(t *testing.T) {
	dir := openDir(t)
	a := start(t, dir)
	b := start(t, dir)
	if err := query(t.Context(), b, "CREATE TABLE shared ()"); err != nil {
		t.Fatal(err)
	}
	a.Stop()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := query(t.Context(), b, "SELECT FROM shared")
		if err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the other process did not take over: %v", err)
		}
	}
	c := start(t, dir)
	c.Stop() // has no effect, because c owns no child process
	if err := query(t.Context(), b, "SELECT FROM shared"); err != nil {
		t.Errorf("after one that had joined left: %v", err)
	}
}

func TestLocalRefusesOtherVersions(t *testing.T) {
	dir := openDir(t)
	data := filepath.Join(dir, "postgres", "data")
	start(t, dir).Stop()
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := (&db.Local{Dir: dir}).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Postgres 9") || !strings.Contains(err.Error(), "postgresql-9") {
		t.Errorf("data of version 9: %v", err)
	}
	if _, err := os.Stat(filepath.Join(data, "base")); err != nil {
		t.Errorf("the data is gone: %v", err)
	}
}

func TestLocalDirectoryNotTraversable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("Postgres runs as the user of this test, who may enter the folder")
	}
	shut := filepath.Join(openDir(t), "shut")
	if err := os.Mkdir(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	err := (&db.Local{Dir: filepath.Join(shut, "data")}).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), shut) || !strings.Contains(err.Error(), "chmod o+x") {
		t.Errorf("a folder that Postgres may not enter: %v", err)
	}
}

func TestOpenHidesPassword(t *testing.T) {
	for _, url := range []string{"postgres://u:canary@127.0.0.1:1/x?connect_timeout=1", "postgres://u:canary@host:port/x"} {
		_, err := db.Open(t.Context(), db.Config{URL: url})
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v", err)
		}
	}
}
