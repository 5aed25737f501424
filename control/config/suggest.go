package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control"
)

// suggestion returns a hint with the known settings whose names resemble an unknown key.
func suggestion(key string, known map[string]Setting) string {
	if rest, ok := strings.CutPrefix(key, providerPrefix); ok && strings.Contains(rest, "_") {
		return "accepted: " + providerPrefix + "NAME_FIELD with the field " + strings.Join(slices.Sorted(maps.Keys(EndpointSettings())), ", ")
	}
	return cmp.Or(control.DidYouMean(key, slices.Collect(maps.Keys(known))), "docs/configuration.md lists the accepted keys")
}
