package phonenumber

import (
	"errors"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"
)

// ErrExtension is returned for a number with an extension.
var ErrExtension = errors.New("the number has an extension: send the number alone, with its country code, like +12025550123")

// ErrLength is returned for a number whose country has no numbers of this length.
var ErrLength = errors.New(
	"the digits are too few or too many for a number of that country: send the number with its country code, like +12025550123",
)

// Dialable returns the digits to dial for a number. It rejects numbers with an extension (ext. 5, x5, #5, ;ext=5,
// доб. 5), and lengths that the country does not use.
func Dialable(s string) (digits string, err error) {
	base, extension := Base(s)
	switch digits = asciiDigits(s); {
	case extension:
		return digits, ErrExtension
	case base != s || !isPossible(digits):
		return digits, ErrLength
	default:
		return digits, nil
	}
}

// SuppressionDigits returns the digits of a number for the suppression list. It removes an extension, because the main
// number must not ring either.
func SuppressionDigits(s string) string {
	base, _ := Base(s)
	return asciiDigits(base)
}

// Base returns a number without its extension, and whether it had one. An extension starts after a complete number,
// with a letter or a sign that does not group digits. Base also removes the ".0" that spreadsheets and scripts append.
func Base(s string) (base string, extension bool) {
	if at := Fraction(s); at >= 0 {
		s = s[:at]
	}
	var digits []byte
	checked := 0 // number of leading digits that were checked and are not a complete number
	last := strings.LastIndexAny(s, "0123456789")
	for i, r := range s {
		switch {
		case i > last || len(digits) > maxDigits:
			return s, false
		case r >= '0' && r <= '9':
			digits = append(digits, byte(r))
		case len(digits) < minNational || len(digits) == checked || isSeparator(r):
		case isPossible(string(digits)):
			return s[:i], true
		default:
			checked = len(digits)
		}
	}
	return s, false
}

// Fraction returns the index of the ".0" that spreadsheets and scripts append to a number (2025550123.0), or -1 if
// there is none.
func Fraction(s string) int {
	at := strings.LastIndexByte(s, '.')
	if at < 0 {
		return -1
	}
	whole, fraction := s[:at], strings.TrimSpace(s[at+1:])
	plain := strings.Trim(strings.TrimPrefix(strings.TrimSpace(whole), "+"), "0123456789") == "" && len(whole) >= minNational
	switch {
	case fraction == "" || strings.Trim(fraction, "0") != "":
		return -1
	case plain, fraction == "0" && isPossible(asciiDigits(whole)):
		return at
	default:
		return -1
	}
}

// isSeparator reports whether r is a character that groups the digits of a number.
func isSeparator(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Pd, r) || strings.ContainsRune("+-.()[]{}/\\'\"_−·:", r)
}

// minNational is the minimum number of digits before an extension.
const minNational = 7

// maxDigits is larger than the length of any number with exit codes.
const maxDigits = 64

// isPossible reports whether a number has a length that its country uses. The number may be in international form,
// have ten digits (North America), or start with 8 instead of 7 (Kazakhstan and Russia).
func isPossible(digits string) bool {
	for rest, ok := TrimExitCode(digits); ok && len(rest) >= minAfterExitCode; rest, ok = TrimExitCode(digits) {
		digits = rest
	}
	switch {
	case digits == "" || len(digits) > 15:
		return false
	case len(digits) == 10 && digits[0] >= '2', len(digits) == 11 && digits[0] == '8' && digits[1] >= '2':
		return true
	case digits[0] == '1':
		return len(digits) == 11
	case digits[0] == '7':
		return len(digits) == 11
	}
	n, err := phonenumbers.Parse("+"+digits, "ZZ")
	return err == nil && phonenumbers.Format(n, phonenumbers.E164) == "+"+digits && phonenumbers.IsPossibleNumber(n)
}

func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// ListedForms returns all forms in which a do-not-call list may contain the number d: the result of Forms, and forms
// with ten digits. Ten digits may be a number of North America, or of Kazakhstan and Russia. ListedForms includes both.
func ListedForms(d string) []string {
	all := Forms(d)
	for _, other := range nationalForms(d) {
		all = append(all, other)
		for _, code := range exitCodes() {
			all = append(all, code+other)
		}
	}
	return all
}

// ListedPlainForms returns ListedForms without the forms that start with an exit code.
func ListedPlainForms(d string) []string { return append(PlainForms(d), nationalForms(d)...) }

// nationalForms adds or removes the country code of Kazakhstan and Russia. For ten digits, it returns the forms with 7
// and 8. For a number with 7 or 8, it returns the ten digits.
func nationalForms(d string) []string {
	switch d = PlainForms(d)[0]; {
	case len(d) == 10 && d[0] >= '2':
		return []string{"7" + d, "8" + d}
	case len(d) == 11 && (d[0] == '7' || d[0] == '8') && d[1] >= '2':
		return []string{d[1:]}
	default:
		return nil
	}
}
