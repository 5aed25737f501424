package screening

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func set(numbers ...string) func(string) bool {
	return func(n string) bool { return slices.Contains(numbers, n) }
}

// registry lists numbers of area code 202.
func registry(numbers ...string) Registry {
	return Registry{Name: "us_national", Version: "7", Downloaded: time.Unix(0, 0), Has: func(n string) (bool, bool) {
		return slices.Contains(numbers, n), len(n) > 5 && n[:5] == "+1202"
	}}
}

// run screens candidates in two parts.
func run(all []Candidate, l Lists, now time.Time) (Screen, []Match) {
	s := Screening{Lists: l}
	s.Add(all[:len(all)/2])
	s.Add(all[len(all)/2:])
	return s.Result(now)
}

func candidates(numbers ...string) []Candidate {
	var all []Candidate
	for i, n := range numbers {
		all = append(all, Candidate{Row: i + 1, Number: n})
	}
	return all
}

func TestScreening(t *testing.T) {
	const a, b, c = "+12025550101", "+12025550102", "+13035550103"
	now := time.Unix(0, 0).Add(24 * time.Hour)
	for _, x := range []struct {
		name                         string
		rows                         []Candidate
		lists                        Lists
		status                       string
		checked, unscreened, matched int
		all                          bool
	}{
		{"clean", candidates(a, b), Lists{Own: set(), Registries: []Registry{registry()}, Expected: true}, Clean, 2, 0, 0, false},
		{"listed", candidates(a, b), Lists{Own: set(), Registries: []Registry{registry(b)}, Expected: true}, Matched, 2, 0, 1, false},
		{"own list", candidates(a, b), Lists{Own: set(a, b), Registries: []Registry{registry(b)}, Expected: true}, Matched, 2, 0, 2, true},
		{"not covered", candidates(a, c), Lists{Own: set(), Registries: []Registry{registry()}, Expected: true}, Partial, 1, 1, 0, false},
		{"not loaded", candidates(a), Lists{Own: set(), Expected: true}, Unscreened, 0, 1, 0, false},
		{"not loaded, own match", candidates(a), Lists{Own: set(a), Expected: true}, Matched, 0, 1, 1, true},
		{"no registry in the market", candidates(a), Lists{Own: set()}, Clean, 1, 0, 0, false},
		{"too old", candidates(a), Lists{Own: set(), Registries: []Registry{registry(a)}, Expected: true, StaleAfter: time.Hour}, Stale, 1, 0, 1, true},
		{"no candidates", nil, Lists{Own: set(), Expected: true}, Clean, 0, 0, 0, false},
	} {
		s, matches := run(x.rows, x.lists, now)
		if s.Status != x.status || s.Checked != x.checked || s.Unscreened != x.unscreened || s.Matched != x.matched ||
			len(matches) != x.matched || s.AllSuppressed != x.all || s.Items == nil {
			t.Errorf("%s: %+v", x.name, s)
		}
	}
}

func TestItemsAreBounded(t *testing.T) {
	var numbers []string
	for i := range 80 {
		numbers = append(numbers, fmt.Sprintf("+1202555%04d", i))
	}
	s, matches := run(candidates(numbers...), Lists{Own: set(numbers...)}, time.Unix(1, 0))
	if len(s.Items) != MaxItems || s.Hidden != 30 || !s.HasMore || len(matches) != 80 {
		t.Errorf("%d items, %d hidden", len(s.Items), s.Hidden)
	}
}

// TestFingerprint checks that the fingerprint changes exactly when the result does.
func TestFingerprint(t *testing.T) {
	pool := []string{"+12025550101", "+12025550102", "+12025550103", "+13035550104"}
	draw := func(t *rapid.T, label string) (Lists, []Candidate) {
		own := rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 4, rapid.ID[string]).Draw(t, label+" own")
		rows := rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 4, rapid.ID[string]).Draw(t, label+" rows")
		copied := registry(rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 4, rapid.ID[string]).Draw(t, label+" registry")...)
		copied.Version = rapid.SampledFrom([]string{"7", "8"}).Draw(t, label+" version")
		return Lists{Own: set(own...), Registries: []Registry{copied}, Expected: true}, candidates(rows...)
	}
	rapid.Check(t, func(t *rapid.T) {
		l1, c1 := draw(t, "first")
		l2, c2 := draw(t, "second")
		s1, m1 := run(c1, l1, time.Unix(1, 0))
		s2, m2 := run(c2, l2, time.Unix(2, 0))
		phones := func(all []Match) []string {
			var p []string
			for _, m := range all {
				p = append(p, m.Phone)
			}
			slices.Sort(p)
			return p
		}
		same := slices.Equal(phones(m1), phones(m2)) && s1.Checked == s2.Checked && s1.Unscreened == s2.Unscreened
		if (s1.Fingerprint == s2.Fingerprint) != same {
			t.Fatalf("same outcome: %v, fingerprints %s %s", same, s1.Fingerprint, s2.Fingerprint)
		}
	})
}
