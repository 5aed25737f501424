package asr

import (
	"slices"
	"strings"
)

// deepgramRegions lists the tags with a region or script that Deepgram lists beside the
// languages themselves, by model family. Another one is refused
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

// deepgramLanguage returns the parameter for the languages of the caller, or "" for the
// default. The region stays where Deepgram lists it. Of several languages that cannot be
// combined, the first one counts.
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
	case base == "nb" || base == "nn": // Norwegian is listed as a whole
		return "no"
	case base == "fil":
		return "tl"
	case base == "es" && hasRegion && !strings.EqualFold(rest, "ES"):
		return "es-419" // Latin America
	case base == "pt" && hasRegion: // not Brazil
		return "pt-PT"
	}
	return base
}
