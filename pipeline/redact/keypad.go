// Package redact removes numbers that callers press, such as card and account numbers, from the stored data of a
// call. Only the model receives them. The package is pure.
package redact

import (
	"fmt"
	"regexp"
	"strings"
)

// maxPlain is the number of digits that may be stored, such as a menu choice. A card's
// security code has three.
const maxPlain = 2

// Keys returns the pressed keys or, if they may be a confidential number, only their
// count.
func Keys(pressed string) string {
	if digits(pressed) <= maxPlain {
		return pressed
	}
	return fmt.Sprintf("%d keys", len(pressed))
}

// Mask returns the keys with every digit replaced by 0.
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

// PressedKeys holds the digits pressed in a call. The zero value is empty.
type PressedKeys struct{ digits []byte }

// Add adds the digits among keys.
func (p *PressedKeys) Add(keys string) {
	for i := range len(keys) {
		if keys[i] >= '0' && keys[i] <= '9' {
			p.digits = append(p.digits, keys[i])
		}
	}
}

// number matches digits with optional spaces, dashes or dots between them.
var number = regexp.MustCompile(`[0-9](?:[ .\-]?[0-9])+`)

// Redact removes numbers from text that contain more than two digits pressed in sequence.
func (p *PressedKeys) Redact(text string) string {
	return p.replace(text, func(n string) string { return fmt.Sprintf("[%d digits]", digits(n)) })
}

// Mask replaces each digit of the numbers that Redact removes by 0.
func (p *PressedKeys) Mask(text string) string { return p.replace(text, Mask) }

// IsEmpty reports whether no digit was pressed.
func (p *PressedKeys) IsEmpty() bool { return len(p.digits) == 0 }

func (p *PressedKeys) replace(text string, by func(number string) string) string {
	if len(p.digits) <= maxPlain || text == "" {
		return text
	}
	return number.ReplaceAllStringFunc(text, func(n string) string {
		if p.hasRun(strings.NewReplacer(" ", "", ".", "", "-", "").Replace(n)) {
			return by(n)
		}
		return n
	})
}

// hasRun reports whether a number contains more than two digits pressed in sequence.
func (p *PressedKeys) hasRun(plain string) bool {
	all := string(p.digits)
	for i := 0; i+maxPlain < len(plain); i++ {
		if strings.Contains(all, plain[i:i+maxPlain+1]) {
			return true
		}
	}
	return false
}
