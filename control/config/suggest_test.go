package config

import (
	"strings"
	"testing"
)

// TestSuggestion checks that the error for a misspelled setting suggests the right one.
func TestSuggestion(t *testing.T) {
	for key, want := range map[string]string{
		"PARLEY_HTPP_ADDR":  "environment: unknown key PARLEY_HTPP_ADDR; did you mean PARLEY_HTTP_ADDR?",
		"PARLEY_HTTP_ADDRS": "did you mean PARLEY_HTTP_ADDR",
		"PARLEY_LOGLEVEL":   "did you mean PARLEY_LOG_LEVEL?",
		"PARLEY_COFFEE":     "docs/configuration.md lists the accepted keys",
	} {
		if _, err := Load("", []string{key + "=1"}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 160 {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, d := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"abc", "acb", 2}} {
		if got := distance(d.a, d.b); got != d.want {
			t.Errorf("%q and %q are %d apart, want %d", d.a, d.b, got, d.want)
		}
	}
}
