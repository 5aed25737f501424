package scenario

import (
	"embed"
	"slices"
	"strings"
)

//go:embed shipped/*.yaml
var shipped embed.FS

// Standard returns the names of the scenarios that "bench turns" runs by default.
func Standard() []string {
	return []string{"plain", "pauses", "barge-in", "backchannel", "cough", "resume", "echo", "hang-up"}
}

// Names returns the names of the shipped scenarios: first the standard ones, then the others in
// alphabetical order.
func Names() []string {
	all := Standard()
	entries, err := shipped.ReadDir("shipped")
	if err != nil {
		return all
	}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), ".yaml"); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
