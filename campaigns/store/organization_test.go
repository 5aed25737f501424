package store

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestSuppressed checks that many numbers are matched like few.
func TestSuppressed(t *testing.T) {
	d := dbtest.New(t)
	org, err := apikeys.EnsureOrganization(t.Context(), d.Pool, "acme")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	digits := func() string { // only two different digits, so that numbers coincide
		s := ""
		for range 9 + r.IntN(2) {
			s += pick("1", "8")
		}
		return s
	}
	var own, numbers []string
	for range 3_000 {
		own = append(own, pick("", "1", "7", "8", "00", "011", "810")+digits())
		numbers = append(numbers, "+"+pick("", "1", "7", "10", "44")+digits())
	}
	if _, err = d.Pool.Exec(t.Context(), "INSERT INTO suppressions (org_id, number) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING", org, own); err != nil {
		t.Fatal(err)
	}
	s := &Store{Pool: d.Pool}
	want := map[string]bool{}
	for from := 0; from < len(numbers); from += bulkNumbers - 1 {
		some, fault := s.Suppressed(t.Context(), d.Pool, org, numbers[from:min(from+bulkNumbers-1, len(numbers))])
		if fault != nil {
			t.Fatal(fault)
		}
		maps.Copy(want, some)
	}
	got, err := s.Suppressed(t.Context(), d.Pool, org, numbers)
	if err != nil || !maps.Equal(got, want) || len(want) < 100 || len(want) > len(numbers)-100 {
		t.Errorf("%d of %d are listed, want %d, %v", len(got), len(numbers), len(want), err)
	}
}
