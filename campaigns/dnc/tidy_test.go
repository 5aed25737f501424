package dnc_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parley-voice/parley/campaigns/dnc"
)

// TestTidy checks that Tidy deletes the files of an interrupted load, even if no load of the registry ever succeeded.
// The newest copy and the files of an active load stay.
func TestTidy(t *testing.T) {
	s := newEnv(t)
	folder := filepath.Join(s.dir, "registries")
	names := func() []string {
		all, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	s.load(dnc.Load{Name: "us_national", Files: []string{s.file("2025550123\n", 0)}})
	good := names()
	for _, left := range []string{"us_national-01A.dnc", "us_national-01B.dnc.7.part", "us_state_tx-01C.dnc.8.part"} {
		if err := os.WriteFile(filepath.Join(folder, left), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := names()
	tx, err := s.Pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended('registry ' || x, 0)) FROM unnest('{us_national,us_state_tx}'::text[]) x")
	}
	if err == nil {
		err = s.Tidy(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, all) {
		t.Errorf("during loads: %q, want %q", got, all)
	}
	if err = tx.Rollback(t.Context()); err == nil {
		err = s.Tidy(t.Context())
	}
	if got := names(); err != nil || !slices.Equal(got, good) {
		t.Errorf("%q, %v; want %q", got, err, good)
	}
	if listed, _, _ := lookup(t, s.Catalog, "+12025550123"); !listed {
		t.Error("the copy in use is gone")
	}
}
