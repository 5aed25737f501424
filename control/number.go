package control

import (
	"slices"
	"strings"
)

// Digits returns the digits of s, 0 to 9, and nothing else of it.
func Digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// SameNumber lists how the number of the digits d may also be written, d among
// them: with and without the codes by which one dials abroad, the country code
// 1 of ten-digit numbers, and 8 for 7.
func SameNumber(d string) []string {
	all := []string{d}
	add := func(s string) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, abroad := range []string{"00", "011", "810"} {
		if rest, ok := strings.CutPrefix(d, abroad); ok && len(rest) >= 8 {
			add(rest)
		}
	}
	for _, s := range slices.Clone(all) {
		switch {
		case len(s) == 10:
			add("1" + s)
		case len(s) == 11 && s[0] == '1':
			add(s[1:])
		case len(s) == 11 && s[0] == '8':
			add("7" + s[1:])
		case len(s) == 11 && s[0] == '7':
			add("8" + s[1:])
		}
	}
	return all
}
