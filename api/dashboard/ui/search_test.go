package ui

import (
	"slices"
	"strings"
	"testing"
)

func TestIn(t *testing.T) {
	many := []string{"O’Brien", "ВЕСНА", "حملة الربيع", "a", "b", "c", "d", "e", "f", "g", "h"}
	whole := func(name string) string { return name }
	for asked, want := range map[string]string{"": strings.Join(many, " "), " brien ": "O’Brien", "весна": "ВЕСНА", "الربيع": "حملة الربيع", "zzz": ""} {
		before := slices.Clone(many)
		found, s := SearchIn(many, asked, "name", whole)
		if strings.Join(found, " ") != want || !s.Shown || s.Query != strings.TrimSpace(asked) || !slices.Equal(many, before) {
			t.Errorf("%q finds %q, %+v", asked, found, s)
		}
	}
	if _, s := SearchIn(many[:maxUnsearched], "", "name", whole); s.Shown {
		t.Errorf("a list of %d entries has a search field", maxUnsearched)
	}
}
