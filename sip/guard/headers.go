package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Header refuses a header that a caller may not add: one that is no header, or
// one that the dialog lives by, or one that a setting of the trunk writes.
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
	case "p-asserted-identity", "privacy", "diversion":
		return fmt.Errorf("header %s is written by a setting of the trunk of its own", name)
	}
	return Text("header "+name, value)
}

// Headers refuses headers of which Header refuses one, or of which two are the
// same: names count without their case, and short forms as the long ones (RFC
// 3261 section 7.3.3).
func Headers(all map[string]string) error {
	seen := make(map[string]string, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := Header(name, all[name]); err != nil {
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
