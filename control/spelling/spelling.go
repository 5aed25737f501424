// Package spelling knows the ways in which people and lists write one telephone number.
package spelling

import (
	"slices"
	"strings"
)

// All lists how the number of the digits d may also be written, d among
// them: as Plain lists them, and those behind the codes by which one dials abroad.
func All(d string) []string {
	all := Plain(d)
	if len(all[0]) >= shortestAbroad {
		for _, s := range slices.Clone(all) {
			for _, code := range abroad() {
				all = append(all, code+s)
			}
		}
	}
	if !slices.Contains(all, d) { // behind more codes than one
		all = append(all, d)
	}
	return all
}

// Plain lists how the number of the digits d is written without a code to dial
// abroad: with and without the country code 1 of ten-digit numbers, and 8 for 7.
// Each of them has the same list.
func Plain(d string) []string {
	for rest, ok := Abroad(d); ok && len(rest) >= shortestAbroad; rest, ok = Abroad(d) {
		d = rest
	}
	switch { // no area code begins with 0 or 1
	case len(d) == 10 && d[0] >= '2':
		return []string{d, "1" + d}
	case len(d) == 11 && d[0] == '1' && d[1] >= '2':
		return []string{d, d[1:]}
	case len(d) == 11 && d[0] == '8' && d[1] >= '2':
		return []string{d, "7" + d[1:]}
	case len(d) == 11 && d[0] == '7' && d[1] >= '2':
		return []string{d, "8" + d[1:]}
	default:
		return []string{d}
	}
}

// shortestAbroad is the fewest digits that are a number behind a code to dial
// abroad.
const shortestAbroad = 8

// abroad are the codes by which one dials abroad: of most countries, of North
// America, of Kazakhstan and Russia, and of North American exchanges of offices.
func abroad() []string { return []string{"00", "011", "810", "9011"} }

// Abroad returns what stands behind a code to dial abroad; ok is false where the
// digits begin with none.
func Abroad(digits string) (rest string, ok bool) {
	for _, code := range abroad() {
		if rest, ok = strings.CutPrefix(digits, code); ok {
			return rest, true
		}
	}
	return digits, false
}
