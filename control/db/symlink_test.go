package db_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/db"
)

// TestLocalRefusesSymlinks checks that no file is opened through a symbolic link. The Postgres account could put such
// a link into its folder to make root open another file.
func TestLocalRefusesSymlinks(t *testing.T) {
	dir := openDir(t)
	home := filepath.Join(dir, "postgres")
	start(t, dir).Stop()
	victim, missing := filepath.Join(dir, "victim"), filepath.Join(dir, "missing")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	intact := func() {
		t.Helper()
		if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
			t.Errorf("a file that the account pointed to now holds %.40q: %v", text, err)
		}
		if _, err := os.Lstat(missing); err == nil {
			t.Error("a file was made where the account pointed to")
		}
	}
	link := func(to, name string) {
		t.Helper()
		_ = os.Remove(name) // the file may not exist
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	// Links in the folder of the Postgres account.
	link(victim, filepath.Join(home, "postgres.log"))
	link(missing, filepath.Join(home, "lock"))
	start(t, dir).Stop()
	intact()
	version := filepath.Join(home, "data", "PG_VERSION")
	kept, err := os.ReadFile(version)
	if err != nil {
		t.Fatal(err)
	}
	link(victim, version)
	err = (&db.Local{Dir: dir, Fast: true}).Start(t.Context())
	if err == nil || strings.Contains(err.Error(), "precious") {
		t.Errorf("a linked PG_VERSION: %v", err)
	}
	if err = os.Remove(version); err == nil {
		err = os.WriteFile(version, kept, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Start must refuse symbolic links in the folder that belongs to this process.
	for _, name := range []string{"postgres.log", "postgres.lock"} {
		link(victim, filepath.Join(dir, name))
		if err := (&db.Local{Dir: dir, Fast: true}).Start(t.Context()); err == nil {
			t.Errorf("%s is followed", name)
		}
		intact()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
