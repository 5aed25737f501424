package benchcli

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/parley-voice/parley/bench/amd"
	"github.com/parley-voice/parley/bench/result"
)

// TestDone checks that a part is measured once per commit and options, and again if its result was invalid.
func TestDone(t *testing.T) {
	p := All{Small: true}.parts()[0]
	options, err := json.Marshal(Amd{Takes: 1, Seed: amd.HeldOut, JSON: "elsewhere.json"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*result.File)
		commit string
		want   bool
	}{
		"the same":            {func(*result.File) {}, "abc", true},
		"another commit":      {func(*result.File) {}, "abd", false},
		"uncommitted changes": {func(f *result.File) { f.Commit = "abc-dirty" }, "abc-dirty", false},
		"unknown commit":      {func(f *result.File) { f.Commit = "dev" }, "dev", false},
		"refused":             {func(f *result.File) { f.Refuse("late") }, "abc", false},
		"other options":       {func(f *result.File) { f.Options = json.RawMessage(`{"Takes":4}`) }, "abc", false},
	} {
		f := &result.File{Format: result.Format, Commit: "abc", Options: options}
		c.change(f)
		file := filepath.Join(t.TempDir(), "amd.json")
		if err := f.Write(file); err != nil {
			t.Fatal(err)
		}
		if got := p.done(file, c.commit); got != c.want {
			t.Errorf("%s: got done %t", name, got)
		}
	}
	if p.done(filepath.Join(t.TempDir(), "none.json"), "abc") {
		t.Error("missing file: got done, want not done")
	}
}
