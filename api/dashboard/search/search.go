// Package search looks through lists that pages have whole. It is pure: a database folds
// the letters of one language alone.
package search

import (
	"slices"
	"strings"
)

// few is how many of something are seen at a glance.
const few = 10

// A Search is what a list is looked through for. The template "search" asks for it.
type Search struct {
	What  string // that is looked through: "name"
	Query string
	Shown bool // there are more than are seen at a glance
}

// In finds those of a list whose name, or whatever else, holds what was asked for, in
// letters of either case.
func In[T any](all []T, query, what string, name func(T) string) ([]T, Search) {
	s := Search{What: what, Query: strings.TrimSpace(query), Shown: len(all) > few}
	if s.Query == "" {
		return all, s
	}
	wanted := strings.ToLower(s.Query)
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !strings.Contains(strings.ToLower(name(one)), wanted) }), s
}
