// Package dtmf sends and detects DTMF digits, as events (RFC 4733) and as tone pairs (ITU-T Q.23 and Q.24). It does no
// I/O and reads no clock.
package dtmf

import (
	"errors"
	"fmt"
	"strings"
)

// Names lists the digits in the order of their event codes (RFC 4733 section 3.2).
const Names = "0123456789*#ABCD"

// Pause is a character that stands for 2 seconds of silence, as on web calls (RTCDTMFSender of WebRTC).
const Pause = ','

// ErrFull means that too many digits are in the queue.
var ErrFull = errors.New("too many keys queued")

// Key returns the digit with an event code.
func Key(code uint8) (rune, bool) {
	if int(code) >= len(Names) {
		return 0, false
	}
	return rune(Names[code]), true
}

// Code returns the event code of a digit. A to D may be in upper or lower case.
func Code(key rune) (uint8, bool) {
	if key >= 'a' && key <= 'd' {
		key -= 'a' - 'A'
	}
	n := strings.IndexRune(Names, key)
	return uint8(max(0, n)), n >= 0 //nolint:gosec // one of sixteen
}

// Validate returns an error if keys contains a character that is neither a digit nor Pause.
func Validate(keys string) error {
	for _, k := range keys {
		if _, ok := Code(k); !ok && k != Pause {
			return fmt.Errorf("invalid key %q; accepted: 0-9, *, #, A-D and comma", k)
		}
	}
	return nil
}
