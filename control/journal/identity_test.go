package journal

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestIdentity checks that a directory keeps its ID, that another directory has another one, and that journals of a
// release without IDs have none.
func TestIdentity(t *testing.T) {
	open := func(dir string) *Journal {
		j, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	dir, old := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "sent-0.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := open(dir), open(dir)
	if first.ID() == "" || second.ID() != first.ID() {
		t.Errorf("the IDs of one directory are %q and %q", first.ID(), second.ID())
	}
	if other := open(t.TempDir()); other.ID() == first.ID() {
		t.Error("two directories have one ID")
	}
	if id := open(old).ID(); id != "" {
		t.Errorf("a journal of an earlier release has the ID %q", id)
	}
	if !first.Seen().IsZero() {
		t.Errorf("a new directory has seen %v", first.Seen())
	}
	at := time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)
	if err := first.SetSeen(at); err != nil || !second.Seen().Equal(at) {
		t.Errorf("seen %v, want %v (%v)", second.Seen(), at, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "seen"), []byte("2026-05"), 0o600); err != nil || !first.Seen().IsZero() {
		t.Errorf("a torn file says %v (%v)", first.Seen(), err)
	}
}
