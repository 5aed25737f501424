package trunks

import (
	"slices"

	"github.com/parley-voice/parley/control"
)

// Numbers are the caller numbers that a subgroup, its trunk, and the grant of that
// name; a grant without any lends all of the trunk's, and so does no grant.
type Numbers struct{ Subgroup, Trunk, Grant []string }

// Shown returns the numbers that a call may show: the subgroup's, else the
// trunk's, and of those the ones that were lent.
func (n Numbers) Shown() []string {
	pool := n.Subgroup
	if len(pool) == 0 {
		pool = n.Trunk
	}
	if len(n.Grant) == 0 {
		return pool
	}
	var lent []string
	for _, number := range pool {
		if _, ok := Among(n.Grant, number); ok {
			lent = append(lent, number)
		}
	}
	return lent
}

// Lent returns those of the trunk that were lent.
func (n Numbers) Lent() []string {
	if len(n.Grant) == 0 {
		return n.Trunk
	}
	return n.Grant
}

// Among returns a number as it is written among some, if it is there.
func Among(some []string, number string) (string, bool) {
	i := slices.IndexFunc(some, func(n string) bool { return control.Digits(n) == control.Digits(number) })
	if i < 0 {
		return "", false
	}
	return some[i], true
}
