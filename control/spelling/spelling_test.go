package spelling

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAll(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{"2025550123", "12025550123"},
		{"12025550123", "2025550123"},
		{"01112025550123", "12025550123"},
		{"0012025550123", "2025550123"},
		{"87011234567", "77011234567"},
		{"77011234567", "87011234567"},
		{"810442071838750", "442071838750"},
		{"81077010000001", "77010000001"},
		{"901177010000001", "87010000001"},
	} {
		if !slices.Contains(All(tt.a), tt.b) {
			t.Errorf("%s is not known as %s: %v", tt.a, tt.b, All(tt.a))
		}
		if !slices.Contains(All(tt.b), tt.a) {
			t.Errorf("%s is not known as %s: %v", tt.b, tt.a, All(tt.b))
		}
	}
	if slices.Contains(All("17012345678"), "77012345678") {
		t.Error("North Dakota is not Kazakhstan")
	}
}

// TestAllIsMutual: whoever is listed in one way is found in any other.
func TestAllIsMutual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.StringMatching(`(00|011|810|9011)?[0-9]{1,15}`).Draw(t, "digits")
		all := All(d)
		for _, same := range all {
			back := All(same)
			if !slices.Contains(back, same) {
				t.Fatalf("%s is not itself: %v", same, back)
			}
			for _, other := range all {
				if other != d && !slices.Contains(back, other) {
					t.Fatalf("%s is %v, but %s is %v", d, all, same, back)
				}
			}
		}
	})
}
