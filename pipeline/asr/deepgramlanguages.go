package asr

import (
	"slices"
	"strings"
)

// deepgramRegions lists the tags with a region or script that Deepgram accepts for a model, besides
// plain languages. Deepgram refuses other tags with a region
// (developers.deepgram.com/docs/models-languages-overview and its changelog up to October 2026).
func deepgramRegions(model string) []string {
	common := []string{
		"da-DK", "de-CH", "en-AU", "en-GB", "en-IN", "en-NZ", "en-US", "es-419", "fr-CA", "ko-KR", "nl-BE", "pt-BR", "pt-PT",
		"sv-SE", "th-TH", "zh-CN", "zh-Hans", "zh-HK", "zh-Hant", "zh-TW",
	}
	if strings.HasPrefix(model, "nova-3") {
		return append(common, "kk-KZ")
	}
	return common
}

// deepgramMulti returns the languages that the language parameter "multi" covers. With "multi",
// Deepgram understands a caller who mixes them.
func deepgramMulti(model string) []string {
	switch {
	case strings.HasPrefix(model, "nova-3"):
		return []string{"en", "es", "fr", "de", "hi", "ru", "pt", "ja", "it", "nl"}
	case strings.HasPrefix(model, "nova-2"):
		return []string{"en", "es"}
	}
	return nil
}

// deepgramLanguage returns the language parameter, or "" for the default. It keeps a region that
// Deepgram lists. Of several languages that "multi" does not cover, it uses the first.
func deepgramLanguage(model string, tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	multi := deepgramMulti(model)
	if all := baseLanguages(tags); len(all) > 1 && !slices.ContainsFunc(all, func(l string) bool { return !slices.Contains(multi, l) }) {
		return "multi"
	}
	tag := tags[0]
	for _, listed := range deepgramRegions(model) {
		if strings.EqualFold(tag, listed) {
			return listed
		}
	}
	base, rest, hasRegion := strings.Cut(tag, "-")
	switch base = strings.ToLower(base); {
	case base == "nb" || base == "nn": // Deepgram lists Norwegian only as "no"
		return "no"
	case base == "fil":
		return "tl"
	case base == "es" && hasRegion && !strings.EqualFold(rest, "ES"):
		return "es-419" // es-419 is the Spanish of Latin America
	case base == "pt" && hasRegion: // every region but Brazil, which is listed
		return "pt-PT"
	}
	return base
}
