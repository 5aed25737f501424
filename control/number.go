package control

import "strings"

// Digits returns the digits of s, 0 to 9, and nothing else of it.
func Digits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}
