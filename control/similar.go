package control

import (
	"cmp"
	"slices"
	"strings"
)

// Placeholder stands in new files for a value that the operator must enter.
const Placeholder = "change-me"

// HasPlaceholder reports whether a value still contains Placeholder.
func HasPlaceholder(value string) bool { return strings.Contains(strings.ToLower(value), Placeholder) }

// DidYouMean returns the question whether up to three names that resemble word were meant. It returns "" if none does.
func DidYouMean(word string, names []string) string {
	type near struct {
		name string
		away int
	}
	var all []near
	for _, name := range slices.Sorted(slices.Values(names)) {
		away := editDistance(strings.ToLower(word), strings.ToLower(name))
		isPart := len(word) > 3 && strings.Contains(name, word)
		if isPart || away <= max(1, len(word)/4) {
			all = append(all, near{name, away})
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(a.away, b.away) })
	if all[0].away <= 2 {
		all = all[:1]
	}
	var shown []string
	for _, n := range all[:min(3, len(all))] {
		shown = append(shown, n.name)
	}
	return "did you mean " + strings.Join(shown, ", ") + "?"
}

// editDistance returns how many bytes must be inserted, removed or replaced to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
