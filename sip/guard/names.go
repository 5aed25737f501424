package guard

import "strings"

// canonical is the long name of a header in small letters, whichever of its
// forms it came in (RFC 3261 section 7.3.3).
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

// single says whether a header may come once only (RFC 3261 section 7.3.1): of
// those that a message is read by.
func single(name string) bool {
	switch name {
	case "from", "to", "call-id", "cseq", "max-forwards", "content-length", "content-type", "content-disposition",
		"expires", "session-expires", "min-se", "event", "rack", "rseq", "refer-to", "replaces", "subscription-state", "date":
		return true
	default:
		return false
	}
}

// isToken says whether a text is a token (RFC 3261 section 25.1).
func isToken(text string) bool {
	for _, c := range text {
		if !isAlnum(c) && !strings.ContainsRune("-.!%*_+`'~", c) {
			return false
		}
	}
	return text != ""
}
