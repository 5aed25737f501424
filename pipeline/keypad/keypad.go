// Package keypad keeps the numbers that callers press, of cards and accounts, out
// of what is kept of a call. It is pure: the model alone is told them.
package keypad

import (
	"fmt"
	"regexp"
	"strings"
)

// shown is how many digits at a time are no secret: a choice of a menu. A card's
// security code has three.
const shown = 2

// Keys says which keys were pressed, or, where they may be a number that is
// nobody's business, how many.
func Keys(pressed string) string {
	if digits(pressed) <= shown {
		return pressed
	}
	return fmt.Sprintf("%d keys", len(pressed))
}

// Mask is keys with every digit a 0.
func Mask(pressed string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, pressed)
}

func digits(s string) int {
	n := 0
	for _, r := range s {
		if r >= '0' && r <= '9' {
			n++
		}
	}
	return n
}

// Pressed is what was pressed in a call. Its zero value is nothing.
type Pressed struct{ digits []byte }

// Add adds keys.
func (p *Pressed) Add(keys string) {
	for i := range len(keys) {
		if keys[i] >= '0' && keys[i] <= '9' {
			p.digits = append(p.digits, keys[i])
		}
	}
}

// number is a number as it is written: digits, with a space, a dash or a dot
// between here and there.
var number = regexp.MustCompile(`[0-9](?:[ .\-]?[0-9])+`)

// Hide takes out of a text the numbers that were pressed: those of more than two
// digits that follow each other among the pressed ones.
func (p *Pressed) Hide(text string) string {
	return p.replace(text, func(n string) string { return fmt.Sprintf("[%d digits]", digits(n)) })
}

// Zero is Hide with a 0 in place of every digit.
func (p *Pressed) Zero(text string) string { return p.replace(text, Mask) }

// None reports whether no digit was pressed.
func (p *Pressed) None() bool { return len(p.digits) == 0 }

func (p *Pressed) replace(text string, by func(number string) string) string {
	if len(p.digits) <= shown || text == "" {
		return text
	}
	return number.ReplaceAllStringFunc(text, func(n string) string {
		if p.tells(strings.NewReplacer(" ", "", ".", "", "-", "").Replace(n)) {
			return by(n)
		}
		return n
	})
}

// tells reports whether a number has more than two of the pressed digits in it,
// one after the other.
func (p *Pressed) tells(plain string) bool {
	all := string(p.digits)
	for i := 0; i+shown < len(plain); i++ {
		if strings.Contains(all, plain[i:i+shown+1]) {
			return true
		}
	}
	return false
}
