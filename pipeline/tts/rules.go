package tts

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// baseLanguage returns the language of a BCP 47 tag in lower case, such as "ru" of "ru-RU".
func baseLanguage(tag string) string {
	base, _, _ := strings.Cut(strings.ToLower(tag), "-")
	return base
}

// checkLanguage returns a RefusedError of status 400 if a model or voice does not speak the
// language. An empty language passes.
func checkLanguage(provider, speaker, language string, spoken []string) error {
	if language == "" || slices.Contains(spoken, baseLanguage(language)) {
		return nil
	}
	return refuse(provider, fmt.Sprintf("%s does not speak %q; accepted: %s", speaker, language, strings.Join(spoken, ", ")))
}

// refuse returns a RefusedError of status 400.
func refuse(provider, text string) error {
	return fmt.Errorf("%s: %w", provider, &pipeline.RefusedError{Status: http.StatusBadRequest, Text: pipeline.Redact(text, nil, nil)})
}

// within returns the speed clamped to the provider's range; 0 remains 0.
func within(speed, low, high float64) float64 {
	if speed == 0 {
		return 0
	}
	return min(max(speed, low), high)
}

// statuses maps words of a provider's error code or text to HTTP statuses. The first entry that matches wins.
var statuses = []struct { //nolint:gochecknoglobals // a table
	status int
	words  []string
}{
	{http.StatusTooManyRequests, []string{"concurren", "rate_limit", "rate limit", "max_active", "too_many", "too many"}},
	{http.StatusBadRequest, []string{"plan_required"}}, // the voice or the model requires another plan
	{http.StatusPaymentRequired, []string{"quota", "credit", "payment", "balance"}},
	{http.StatusUnauthorized, []string{"api_key", "api key", "unauthorized", "unauthenticated", "authentication", "token"}},
	{http.StatusBadRequest, []string{"voice", "model", "language", "unsupported", "invalid", "not_found", "does not exist", "character"}},
}

// statusOf returns the HTTP status that matches a provider's error code or text, or 0.
func statusOf(text string) int {
	text = strings.ToLower(text)
	for _, s := range statuses {
		if slices.ContainsFunc(s.words, func(word string) bool { return strings.Contains(text, word) }) {
			return s.status
		}
	}
	return 0
}

// endpoint appends a path to the path of a base URL, and keeps the query of the URL.
func endpoint(base, path string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", errors.New("the URL is malformed") // the address may hold a key
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	return u.String(), nil
}

// withExtra returns a copy of o.Extra with the parameters of own added. own wins a conflict.
func withExtra(o pipeline.Options, own map[string]any) map[string]any {
	all := make(map[string]any, len(o.Extra)+len(own))
	maps.Copy(all, o.Extra)
	maps.Copy(all, own)
	return all
}
