// Package sanitize checks what enters and leaves the SIP library: it refuses
// values that must not be in a message, drops unwanted input, and keeps messages
// and phone numbers out of logs.
package sanitize

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxText is the longest value in a message, in bytes.
const maxText = 512

// CheckText refuses a value that is too long, not UTF-8, or has control
// characters, which could end a header line (RFC 3261 section 25.1).
func CheckText(what, value string) error {
	if len(value) > maxText {
		return fmt.Errorf("%s is %d bytes long, want at most %d", what, len(value), maxText)
	}
	for i := range len(value) {
		if c := value[i]; c < 0x20 || c == 0x7f {
			return fmt.Errorf("%s contains the control character %#02x", what, c)
		}
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("%s is not UTF-8", what)
	}
	return nil
}

// CheckNumber refuses what is not a phone number or extension in a SIP URI:
// letters, digits and + * # - _ . are accepted.
func CheckNumber(what, value string) error {
	if value == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if err := CheckText(what, value); err != nil {
		return err
	}
	for _, c := range value {
		if !isAlnum(c) && !strings.ContainsRune("+*#-_.", c) {
			return fmt.Errorf("%s contains %q", what, c)
		}
	}
	return nil
}

// EscapeUser escapes a text as the user part of a URI (RFC 3261 section 25.1).
func EscapeUser(user string) string {
	var b strings.Builder
	for i := range len(user) {
		if c := user[i]; isAlnum(rune(c)) || strings.IndexByte("-_.!~*'()&=+$,;?/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// CheckID refuses what cannot be the word before the @ of a Call-ID.
func CheckID(what, value string) error { return checkToken(what, value, 128) }

// checkToken refuses what is not a token (RFC 3261 section 25.1) of 1 to most
// bytes.
func checkToken(what, value string, most int) error {
	if value == "" || len(value) > most {
		return fmt.Errorf("%s is %d bytes long, want 1 to %d", what, len(value), most)
	}
	for _, c := range value {
		if !isAlnum(c) && !strings.ContainsRune("-.!%*_+`'~", c) {
			return fmt.Errorf("%s contains %q", what, c)
		}
	}
	return nil
}

// Clean removes control characters from a peer's text and limits it to 128
// characters.
func Clean(text string) string { return Truncate(text, 128) }

// Truncate is Clean with another limit.
func Truncate(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f || c == utf8.RuneError {
			return -1
		}
		return c
	}, text)
	if r := []rune(text); len(r) > most {
		text = string(r[:most])
	}
	return text
}

func isAlnum(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
