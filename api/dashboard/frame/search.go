package frame

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

// Found are those of a list whose name, or whatever else, holds what was asked for, in
// letters of either case.
func Found[T any](r *Request, all []T, what string, name func(T) string) ([]T, Search) {
	s := Search{What: what, Query: strings.TrimSpace(r.Query("q")), Shown: len(all) > few}
	if s.Query == "" {
		return all, s
	}
	wanted := strings.ToLower(s.Query)
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !strings.Contains(strings.ToLower(name(one)), wanted) }), s
}
