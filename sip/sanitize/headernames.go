package sanitize

import "strings"

// canonical returns the long header name in lower case (RFC 3261 section 7.3.3).
func canonical(name string) string {
	name = strings.ToLower(name)
	switch name {
	case "c":
		return "content-type"
	case "e":
		return "content-encoding"
	case "f":
		return "from"
	case "i":
		return "call-id"
	case "k":
		return "supported"
	case "l":
		return "content-length"
	case "m":
		return "contact"
	case "o":
		return "event"
	case "r":
		return "refer-to"
	case "s":
		return "subject"
	case "t":
		return "to"
	case "v":
		return "via"
	case "x":
		return "session-expires"
	default:
		return name
	}
}

// isSingle reports whether a header may occur only once (RFC 3261 section 7.3.1),
// for headers that we read.
func isSingle(name string) bool {
	switch name {
	case "from", "to", "call-id", "cseq", "max-forwards", "content-length", "content-type", "content-disposition",
		"expires", "session-expires", "min-se", "event", "rack", "rseq", "refer-to", "replaces", "subscription-state", "date":
		return true
	default:
		return false
	}
}

// isToken reports whether a text is a token (RFC 3261 section 25.1).
func isToken(text string) bool { return checkToken("", text, len(text)) == nil }
