package market

import "sync/atomic"

// Most numbers are in a plain form of the market's country. Whether such a number is called depends only on its first
// digits, so the verdict is cached by these digits.

// prefixes is the number of cached verdicts: one per four digits.
const prefixes = 10_000

// A verdict applies to the numbers with a prefix.
type verdict uint32

const (
	read verdict = 1 << iota
	doubtful
	otherCountry
	otherType
)

func verdictOf(n Number) verdict {
	v := read
	if n.Doubtful {
		v |= doubtful
	}
	switch n.Refusal {
	case CountryUnsupported:
		v |= otherCountry
	case TypeUnsupported:
		v |= otherType
	case Callable:
	}
	return v
}

// of applies the verdict to a number.
func (v verdict) of(e164 string) Number {
	n := Number{E164: e164, Doubtful: v&doubtful != 0}
	switch {
	case v&otherCountry != 0:
		n.Refusal = CountryUnsupported
	case v&otherType != 0:
		n.Refusal = TypeUnsupported
	}
	return n
}

// parsePlain returns the E.164 form of a number of the market's own plan, and its cached
// verdict. It returns nil if the number is in another form, or if the verdict depends on more
// than its first digits.
func (p *Package) parsePlain(raw string) (e164 string, known *atomic.Uint32) {
	digits, plus, ok := plainDigits(raw)
	if !ok {
		return "", nil
	}
	switch {
	case p.Region == "US" && len(p.areas) > 0:
		return p.parsePlainUS(digits, plus)
	case p.Region == "KZ" && len(p.areas) == 0:
		return p.parsePlainKZ(digits, plus)
	default:
		return "", nil
	}
}

// parsePlainUS parses a number in one of the market's area codes. The area code and the next digit decide whether such
// a number may be called, so the result is cached by these four digits. Territories that the phone number library
// treats as countries need more digits, so parsePlainUS returns nil for them.
func (p *Package) parsePlainUS(digits []byte, plus bool) (e164 string, known *atomic.Uint32) {
	if len(digits) == 11 && digits[0] == '1' {
		digits, plus = digits[1:], false
	}
	national := string(digits)
	if plus || !isNANP(national) || p.areas[national[:3]].state == "" || isTollFree(national[:3]) {
		return "", nil
	}
	return "+1" + national, &p.known[prefix(national[:4])]
}

// parsePlainKZ parses a number that begins with 7 after the country code 7 or the trunk prefix 8. The verdict depends
// on its next four digits.
func (p *Package) parsePlainKZ(digits []byte, plus bool) (e164 string, known *atomic.Uint32) {
	if len(digits) == 11 && (digits[0] == '7' || digits[0] == '8' && !plus) {
		digits, plus = digits[1:], false
	}
	if plus || len(digits) != 10 || digits[0] != '7' {
		return "", nil
	}
	national := string(digits)
	return "+7" + national, &p.known[prefix(national[1:5])]
}

// prefix returns four digits as a number.
func prefix(s string) int {
	n := 0
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// plainDigits returns the digits of a number that has only digits, a leading plus, and single
// dashes, dots or spaces between digits.
func plainDigits(raw string) (digits []byte, plus, ok bool) {
	if raw != "" && raw[0] == '+' {
		plus, raw = true, raw[1:]
	}
	digits = make([]byte, 0, 16)
	for i := range len(raw) {
		switch c := raw[i]; {
		case c >= '0' && c <= '9' && len(digits) < cap(digits):
			digits = append(digits, c)
		case (c == '-' || c == '.' || c == ' ') && i > 0 && i < len(raw)-1 && isDigit(raw[i-1]) && isDigit(raw[i+1]):
		default:
			return nil, false, false
		}
	}
	return digits, plus, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
