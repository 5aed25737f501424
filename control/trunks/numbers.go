package trunks

import (
	"slices"

	"github.com/parley-voice/parley/control"
)

// Numbers are the caller numbers of a subgroup, its trunk and its grant. If Grant is empty, all numbers of the trunk
// are lent.
type Numbers struct{ Subgroup, Trunk, Grant []string }

// Usable returns the numbers that a call may show: the subgroup's numbers, or the trunk's numbers if the subgroup has
// none. It excludes numbers that the grant does not lend.
func (n Numbers) Usable() []string {
	pool := n.Subgroup
	if len(pool) == 0 {
		pool = n.Trunk
	}
	if len(n.Grant) == 0 {
		return pool
	}
	var lent []string
	for _, number := range pool {
		if _, ok := FindNumber(n.Grant, number); ok {
			lent = append(lent, number)
		}
	}
	return lent
}

// Granted returns the numbers of the trunk that the grant lends.
func (n Numbers) Granted() []string {
	if len(n.Grant) == 0 {
		return n.Trunk
	}
	return n.Grant
}

// FindNumber returns the number in a list that has the same digits as number.
func FindNumber(some []string, number string) (string, bool) {
	i := slices.IndexFunc(some, func(n string) bool { return control.Digits(n) == control.Digits(number) })
	if i < 0 {
		return "", false
	}
	return some[i], true
}
