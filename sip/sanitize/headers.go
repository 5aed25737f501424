package sanitize

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CheckHeader returns an error for a custom header that is invalid, that SIP
// itself uses, or that a setting of the trunk writes.
func CheckHeader(name, value string) error {
	if err := checkToken("header name", name, 64); err != nil {
		return err
	}
	switch strings.ToLower(name) {
	case "via", "v", "from", "f", "to", "t", "call-id", "i", "cseq", "contact", "m", "max-forwards",
		"route", "record-route", "content-type", "c", "content-length", "l", "content-encoding", "e",
		"content-disposition", "authorization", "proxy-authorization", "allow", "supported", "k", "require", "proxy-require", "user-agent",
		"session-expires", "x", "min-se", "rseq", "rack", "identity", "y", "date", "event", "o",
		"expires", "replaces", "refer-to", "r", "subscription-state":
		return fmt.Errorf("header %s cannot be set", name)
	case "p-asserted-identity", "privacy", "diversion":
		return fmt.Errorf("header %s cannot be set; use the trunk's settings", name)
	}
	return CheckText("header "+name, value)
}

// CheckHeaders applies CheckHeader to all headers and refuses duplicates. Names
// are case-insensitive, and short forms equal the long ones (RFC 3261 section
// 7.3.3).
func CheckHeaders(all map[string]string) error {
	seen := make(map[string]string, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := CheckHeader(name, all[name]); err != nil {
			return err
		}
		long := canonical(name)
		if other, ok := seen[long]; ok {
			return fmt.Errorf("headers %s and %s are the same", other, name)
		}
		seen[long] = name
	}
	return nil
}
