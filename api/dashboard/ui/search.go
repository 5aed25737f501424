package ui

import (
	"slices"
	"strings"
)

// maxUnsearched is the longest list without a search field.
const maxUnsearched = 10

// A Search filters a list on the server. The template "search" shows its form.
type Search struct {
	What  string // the property that is searched, such as "name"
	Query string
	Shown bool // the list is long enough for a search field
}

// SearchIn returns the items whose name contains the query, in any script and ignoring case. A
// database would fold the letters of one language only.
func SearchIn[T any](all []T, query, what string, name func(T) string) ([]T, Search) {
	s := Search{What: what, Query: strings.TrimSpace(query), Shown: len(all) > maxUnsearched}
	if s.Query == "" {
		return all, s
	}
	wanted := strings.ToLower(s.Query)
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !strings.Contains(strings.ToLower(name(one)), wanted) }), s
}
