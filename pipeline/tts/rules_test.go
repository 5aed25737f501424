package tts

import (
	"slices"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

// voices returns one client of each provider.
func voices() map[string]pipeline.Voice {
	return map[string]pipeline.Voice{
		"azure": Azure{}, "cartesia": &Cartesia{}, "deepgram": Deepgram{}, "elevenlabs": ElevenLabs{}, "espeak": Espeak{}, "openai": OpenAI{},
		"soniox": Soniox{}, "yandex": Yandex{},
	}
}

// TestOptionRules checks that each client lists its options, that these options exist, and that no
// parameter is both known and reserved.
func TestOptionRules(t *testing.T) {
	for name, v := range voices() {
		ruled, ok := v.(pipeline.RuledProvider)
		if !ok {
			t.Errorf("%s has no rules", name)
			continue
		}
		r := ruled.OptionRules()
		for _, option := range r.Takes {
			if !slices.Contains([]string{"temperature", "speed", "instructions", "options"}, option) {
				t.Errorf("%s: a voice has no option %s", name, option)
			}
		}
		if slices.Contains(r.Takes, "options") != (len(r.Known) > 0) {
			t.Errorf("%s takes %v but knows %v", name, r.Takes, r.Known)
		}
		for _, parameter := range r.Known {
			if slices.Contains(r.Reserved, parameter) {
				t.Errorf("%s: %s is known and reserved", name, parameter)
			}
		}
		if _, err := r.Check(pipeline.Options{Speed: 1.1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, parameter := range r.Reserved {
			if _, err := r.Check(pipeline.Options{Extra: map[string]any{parameter: 1}}); err == nil {
				t.Errorf("%s accepts %s", name, parameter)
			}
		}
	}
}

// TestDefaultLanguages checks that, without a named voice, each client accepts every language in its OptionRules.
func TestDefaultLanguages(t *testing.T) {
	for name, v := range voices() {
		for _, language := range v.(pipeline.RuledProvider).OptionRules().Languages {
			var err error
			s := pipeline.Style{Rate: 8000, Language: language}
			switch name {
			case "yandex":
				s.Voice, err = yandexVoice(s)
			case "deepgram":
				s.Voice, err = deepgramVoice(s)
			case "elevenlabs":
				err = checkLanguage(name, "", elevenLabsLanguage(language), elevenLabsLanguages(ElevenLabsModel))
			case "cartesia":
				err = checkLanguage(name, "", cartesiaLanguage(language), cartesiaLanguages(CartesiaModel))
			}
			if err != nil || (name == "yandex" || name == "deepgram") && s.Voice == "" {
				t.Errorf("%s in %s: %q, %v", name, language, s.Voice, err)
			}
		}
	}
}

func TestStatusOf(t *testing.T) {
	for text, want := range map[string]int{
		"concurrency_limited": 429, "Too many requests": 429, "quota_exceeded": 402, "paid_plan_required": 400, "invalid_api_key": 401,
		"UNAUTHENTICATED": 401, "voice_not_found": 400, "max_character_limit_exceeded": 400, "internal_error": 0, "": 0,
	} {
		if got := statusOf(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for base, want := range map[string]string{
		"https://x/v1": "https://x/v1/p", "https://x/v1/": "https://x/v1/p", "https://x": "https://x/p",
		"https://x/v1?a=1&b=2": "https://x/v1/p?a=1&b=2", "http://bad host": "",
	} {
		if got, err := endpoint(base, "/p"); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", base, got, err)
		}
	}
}
