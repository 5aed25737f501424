// Package dtmf presses the keys of a telephone and hears them pressed: as
// events (RFC 4733) and as pairs of tones (ITU-T Q.23 and Q.24). It is pure:
// nothing here knows the network or what time it is.
package dtmf

import (
	"errors"
	"fmt"
	"strings"
)

// Names are the keys, in the order of their event codes (RFC 4733 section 3.2).
const Names = "0123456789*#ABCD"

// Pause is half a second in which no key is pressed.
const Pause = ','

// ErrFull is returned where more keys wait to be pressed than there is room for.
var ErrFull = errors.New("too many keys wait to be pressed")

// Key returns the key of an event code.
func Key(code uint8) (rune, bool) {
	if int(code) >= len(Names) {
		return 0, false
	}
	return rune(Names[code]), true
}

// Code returns the event code of a key, in either case.
func Code(key rune) (uint8, bool) {
	if key >= 'a' && key <= 'd' {
		key -= 'a' - 'A'
	}
	n := strings.IndexRune(Names, key)
	return uint8(max(0, n)), n >= 0 //nolint:gosec // one of sixteen
}

// Check says why keys cannot be pressed, or nil where they can.
func Check(keys string) error {
	for _, k := range keys {
		if _, ok := Code(k); !ok && k != Pause {
			return fmt.Errorf("no such key: %q", k)
		}
	}
	return nil
}
