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

// Header refuses a header that a caller may not add: one that is no header, or
// one that the dialog lives by.
func Header(name, value string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("header name is %d bytes long, want 1 to 64", len(name))
	}
	for _, c := range name {
		if !isAlnum(c) && !strings.ContainsRune("-.!%*_+`'~", c) {
			return fmt.Errorf("header name %q holds %q", name, c)
		}
	}
	switch strings.ToLower(name) {
	case "via", "v", "from", "f", "to", "t", "call-id", "i", "cseq", "contact", "m", "max-forwards",
		"route", "record-route", "content-type", "c", "content-length", "l", "content-encoding", "e",
		"content-disposition", "authorization", "proxy-authorization", "allow", "supported", "k", "require", "proxy-require", "user-agent",
		"session-expires", "x", "min-se", "rseq", "rack", "identity", "y", "date", "event", "o", "expires", "replaces", "refer-to", "r", "subscription-state":
		return fmt.Errorf("header %s is not the caller's to set", name)
	}
	return Text("header "+name, value)
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
