// Package guard stands between the SIP library and the outside: it refuses
// what must not be written into a message, drops what need not be read from
// the network, and keeps messages and numbers out of the logs.
package guard

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxText bounds a value that is put into a message.
const maxText = 512

// Text refuses a value that would end a header line or hide in one: control
// characters (RFC 3261 section 25.1), bytes that are not UTF-8, and length.
func Text(what, value string) error {
	if len(value) > maxText {
		return fmt.Errorf("%s is %d bytes long, at most %d are sent", what, len(value), maxText)
	}
	for i := range len(value) {
		if c := value[i]; c < 0x20 || c == 0x7f {
			return fmt.Errorf("%s holds the control character %#02x", what, c)
		}
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("%s is not UTF-8", what)
	}
	return nil
}

// Number refuses what cannot be the user part of a SIP URI as a phone number
// or an extension: anything but letters, digits and + * # - _ .
func Number(what, value string) error {
	if value == "" {
		return fmt.Errorf("%s is empty", what)
	}
	if err := Text(what, value); err != nil {
		return err
	}
	for _, c := range value {
		if !isAlnum(c) && !strings.ContainsRune("+*#-_.", c) {
			return fmt.Errorf("%s holds %q", what, c)
		}
	}
	return nil
}

// Escape writes a text as the user part of a URI (RFC 3261 section 25.1).
func Escape(user string) string {
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

// ID refuses what cannot be the word before the @ of a Call-ID.
func ID(what, value string) error {
	if value == "" || len(value) > 128 {
		return fmt.Errorf("%s is %d bytes long, want 1 to 128", what, len(value))
	}
	for _, c := range value {
		if !isAlnum(c) && !strings.ContainsRune("-.!%*_+`'~", c) {
			return fmt.Errorf("%s holds %q", what, c)
		}
	}
	return nil
}

// Clean makes a text of a peer fit to be kept and shown: without control
// characters, and of bounded length.
func Clean(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f || c == utf8.RuneError {
			return -1
		}
		return c
	}, text)
	if r := []rune(text); len(r) > 128 {
		text = string(r[:128])
	}
	return text
}

func isAlnum(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
