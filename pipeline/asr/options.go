package asr

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// languagesOf returns the languages that the caller may speak, without duplicates. The agent's language comes first.
func languagesOf(s pipeline.Stream) []string {
	var all []string
	for _, tag := range append([]string{s.Language}, s.Options.Languages...) {
		if tag != "" && !slices.ContainsFunc(all, func(other string) bool { return strings.EqualFold(other, tag) }) {
			all = append(all, tag)
		}
	}
	return all
}

// baseLanguage returns the language of a BCP 47 tag in lower case, without region and script.
func baseLanguage(tag string) string {
	base, _, _ := strings.Cut(tag, "-")
	return strings.ToLower(base)
}

// baseLanguages returns the languages without regions and duplicates.
func baseLanguages(tags []string) []string {
	var all []string
	for _, tag := range tags {
		if base := baseLanguage(tag); !slices.Contains(all, base) {
			all = append(all, base)
		}
	}
	return all
}

// addParameters adds the parameters in Options.Extra to a query, except reserved ones.
func addParameters(q url.Values, extra map[string]any, rules pipeline.OptionRules) {
	for name, value := range extra {
		if !slices.Contains(rules.Reserved, name) {
			q[name] = parameterTexts(value)
		}
	}
}

// parameterTexts returns a parameter's value as text: one string for each element of a list.
func parameterTexts(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case int:
		return []string{strconv.Itoa(v)}
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, parameterTexts(one)...)
		}
		return all
	}
	b, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return []string{string(b)}
}

// addFields adds the parameters in Options.Extra to a JSON object, except reserved ones.
func addFields(object, extra map[string]any, rules pipeline.OptionRules) {
	for name, value := range extra {
		if !slices.Contains(rules.Reserved, name) {
			object[name] = value
		}
	}
}
