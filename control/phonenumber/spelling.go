// Package phonenumber normalizes telephone numbers and lists their equivalent forms.
package phonenumber

import (
	"slices"
	"strings"
)

// Forms returns the equivalent forms of the digits d, including d: those of PlainForms, and each after an exit code.
func Forms(d string) []string {
	all := PlainForms(d)
	if len(all[0]) >= minAfterExitCode {
		for _, s := range slices.Clone(all) {
			for _, code := range exitCodes() {
				all = append(all, code+s)
			}
		}
	}
	if !slices.Contains(all, d) { // after several exit codes
		all = append(all, d)
	}
	return all
}

// PlainForms returns the forms of the digits d without an exit code: ten-digit numbers with and without the country code
// 1, and 8 for 7. Each form has the same list.
func PlainForms(d string) []string {
	for rest, ok := TrimExitCode(d); ok && len(rest) >= minAfterExitCode; rest, ok = TrimExitCode(d) {
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

// minAfterExitCode is the least number of digits after an exit code.
const minAfterExitCode = 8

// exitCodes returns the prefixes for international calls of most countries, of North America, of Kazakhstan and Russia,
// and of North American office exchanges.
func exitCodes() []string { return []string{"00", "011", "810", "9011"} }

// TrimExitCode removes an exit code; ok is false if there is none.
func TrimExitCode(digits string) (rest string, ok bool) {
	for _, code := range exitCodes() {
		if rest, ok = strings.CutPrefix(digits, code); ok {
			return rest, true
		}
	}
	return digits, false
}
