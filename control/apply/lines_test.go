package apply

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDiffLines(t *testing.T) {
	long := "1\n2\n3\n4\n5\n6\n7\n8\n9"
	for _, c := range []struct{ name, before, after, want string }{
		{"equal", "a\nb", "a\nb", "…"},
		{"new", "", "a\nb", "+a +b"},
		{"removed", "a", "", "-a"},
		{"one line", "a\nb\nc", "a\nx\nc", " a -b +x  c"},
		{"far lines are left out", long, strings.Replace(long, "5", "x", 1), "…  2  3  4 -5 +x  6  7  8 …"},
		{"moved", "a\nb", "b\na", "-a  b +a"},
		{"line end", "a\n", "a", "…"},
	} {
		var got []string
		for _, l := range DiffLines(c.before, c.after) {
			got = append(got, l.Mark+l.Text)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}

// TestDiffLinesAreComplete checks that the lines of a comparison give both texts again.
func TestDiffLinesAreComplete(t *testing.T) {
	line := rapid.SampledFrom([]string{"a", "b", "c", ""})
	rapid.Check(t, func(t *rapid.T) {
		before, after := rapid.SliceOfN(line, 0, 12).Draw(t, "before"), rapid.SliceOfN(line, 0, 12).Draw(t, "after")
		var was, is []string
		for _, l := range diffMiddle(before, after) {
			if l.Mark != "+" {
				was = append(was, l.Text)
			}
			if l.Mark != "-" {
				is = append(is, l.Text)
			}
		}
		if !slices.Equal(was, before) || !slices.Equal(is, after) {
			t.Fatalf("%q and %q", was, is)
		}
	})
}
