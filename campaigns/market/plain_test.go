package market

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/control/phonenumber"
)

// TestReadPlain checks that a number in plain form gives the same result as in another form, whatever was parsed
// before. It covers all area codes, each following digit, and common spellings.
func TestReadPlain(t *testing.T) {
	us, kz := load(t, "us"), load(t, "kz")
	same := func(t interface{ Errorf(string, ...any) }, p *Package, raw string) {
		plain := raw
		if at := phonenumber.Fraction(raw); at >= 0 {
			plain = raw[:at]
		}
		want, _, bad := p.parse(plain)
		if n, err := p.Read(raw); n != want || (err == nil) != (bad == nil) {
			t.Errorf("%s %q: %+v, %v; want %+v, %v", p.Code, raw, n, err, want, bad)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, code := range slices.Sorted(maps.Keys(us.areas)) {
		for digit := range 10 {
			for range 3 {
				same(t, us, fmt.Sprintf("%s%d%06d", code, digit, random.IntN(1_000_000)))
			}
		}
	}
	for prefix := range prefixes {
		same(t, kz, fmt.Sprintf("7%04d%05d", prefix, random.IntN(100_000)))
		same(t, kz, fmt.Sprintf("+77%04d%05d", prefix, random.IntN(100_000)))
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.StringMatching(`\+?[0178]?[ .-]?[2-9][0-9]{2}[ .-]?[0-9]{3}[ .-]?[0-9]{2}[ .-]{0,2}[0-9]{1,3}[ x]?`).Draw(t, "raw")
		same(t, us, raw)
		same(t, kz, raw)
	})
	for _, raw := range []string{"2125550123", "+1 212-555-0123", "12125550123"} {
		if _, known := us.parsePlain(raw); known == nil {
			t.Errorf("%q is not recognized as plain", raw)
		}
	}
	for _, raw := range []string{"87012345678", "+77012345678", "7012345678"} {
		if _, known := kz.parsePlain(raw); known == nil {
			t.Errorf("%q is not recognized as plain", raw)
		}
	}
}
