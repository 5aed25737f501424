package asr

import (
	"slices"
	"strings"
)

// deepgramRegions lists, by model family, the tags with a region or script that Deepgram
// accepts in addition to plain languages. It refuses other tags
// (developers.deepgram.com/docs/models-languages-overview and its changelog up to October
// 2026).
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

// deepgramMulti returns the languages of "multi", which follows a caller who mixes them.
func deepgramMulti(model string) []string {
	switch {
	case strings.HasPrefix(model, "nova-3"):
		return []string{"en", "es", "fr", "de", "hi", "ru", "pt", "ja", "it", "nl"}
	case strings.HasPrefix(model, "nova-2"):
		return []string{"en", "es"}
	}
	return nil
}

// deepgramLanguage returns the language parameter, or "" for the default. A region is kept if
// Deepgram lists it. Languages that cannot be combined are reduced to the first one.
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
	case base == "pt" && hasRegion: // all but the Portuguese of Brazil
		return "pt-PT"
	}
	return base
}
