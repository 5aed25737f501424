package config

import (
	"strings"
	"testing"
)

// TestSuggestion checks that the error for a misspelled setting suggests the right one.
func TestSuggestion(t *testing.T) {
	for key, want := range map[string]string{
		"PARLEY_HTPP_ADDR":          "environment: unknown key PARLEY_HTPP_ADDR; did you mean PARLEY_HTTP_ADDR?",
		"PARLEY_HTTP_ADDRS":         "did you mean PARLEY_HTTP_ADDR",
		"PARLEY_LOGLEVEL":           "did you mean PARLEY_LOG_LEVEL?",
		"PARLEY_PROVIDER_GROQ_KEYS": "accepted: PARLEY_PROVIDER_NAME_FIELD with the field API_VERSION, CONCURRENCY,",
		"PARLEY_COFFEE":             "docs/configuration.md lists the accepted keys",
	} {
		if _, err := Load("", []string{key + "=1"}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 220 {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
