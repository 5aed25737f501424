package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// suggestion returns a hint with the known settings whose names resemble an unknown key.
func suggestion(key string, known map[string]Setting) string {
	type near struct {
		key  string
		away int
	}
	var all []near
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if away := distance(key, k); away <= len(key)/4 {
			all = append(all, near{k, away})
		}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(a.away, b.away) })
	if len(all) == 0 {
		return "docs/configuration.md lists the accepted keys"
	}
	if all[0].away <= 2 {
		return "did you mean " + all[0].key + "?"
	}
	var names []string
	for _, n := range all[:min(3, len(all))] {
		names = append(names, n.key)
	}
	return "did you mean " + strings.Join(names, ", ") + "?"
}

func distance(a, b string) int {
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
