// Package phonenumber normalizes telephone numbers and lists the forms in which one number can be written.
package phonenumber

import (
	"slices"
	"strings"
)

// Forms returns all forms of the number d, including d itself: the result of PlainForms, and these forms after each
// exit code.
func Forms(d string) []string {
	all := PlainForms(d)
	if len(all[0]) >= minAfterExitCode {
		for _, s := range slices.Clone(all) {
			for _, code := range exitCodes() {
				all = append(all, code+s)
			}
		}
	}
	if !slices.Contains(all, d) { // digits after several exit codes
		all = append(all, d)
	}
	return all
}

// PlainForms returns the forms of the number d without an exit code. North American numbers have a form with and a form
// without the country code 1. Numbers of Kazakhstan and Russia have a form with 7 and a form with 8. The list is the
// same for each form.
func PlainForms(d string) []string {
	for rest, ok := TrimExitCode(d); ok && len(rest) >= minAfterExitCode; rest, ok = TrimExitCode(d) {
		d = rest
	}
	switch { // area codes do not begin with 0 or 1
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

// minAfterExitCode is the minimum number of digits after an exit code.
const minAfterExitCode = 8

// exitCodes returns the prefixes for international calls: 00 (most countries), 011 (North America), 810 (Kazakhstan and
// Russia) and 9011 (North American office phone systems).
func exitCodes() []string { return []string{"00", "011", "810", "9011"} }

// TrimExitCode removes an exit code. ok is false if the number has none.
func TrimExitCode(digits string) (rest string, ok bool) {
	for _, code := range exitCodes() {
		if rest, ok = strings.CutPrefix(digits, code); ok {
			return rest, true
		}
	}
	return digits, false
}
