package asr

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Defaults of Transcriptions.
const (
	TranscriptionsURL   = "https://api.openai.com/v1"
	TranscriptionsModel = "gpt-transcribe" // default at OpenAI
	WhisperModel        = "whisper-1"      // default elsewhere; servers of a single model ignore it
)

// Transcriptions transcribes with the file API of OpenAI, POST /audio/transcriptions, which Groq,
// speaches, whisper.cpp, vLLM and LocalAI also serve
// (developers.openai.com/api/reference/resources/audio/subresources/transcriptions). The client
// detects speech itself. On Finalize it sends the speech without the silence around it, at most 28 s
// in a request. A stream opens without a connection, so a refusal comes with the first speech.
//
// Whisper models report word times and the probability that nobody spoke. Whisper invents words for silence, so the
// client drops such segments. A server without verbose_json needs the option response_format: json.
type Transcriptions struct {
	URL    string       // base URL; empty means TranscriptionsURL
	Key    media.Secret // bearer token; empty sends none
	Header http.Header  // further headers of each request; may hold keys
	Client *http.Client // nil means http.DefaultClient; must have no Timeout
}

// OptionRules implements pipeline.RuledProvider.
func (Transcriptions) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"keyterms", "languages", "temperature", "options"},
		Reserved: []string{
			"file", "keywords", "language", "languages", "model", "stream", "temperature", "timestamp_granularities",
		},
		Known: []string{"prompt", "response_format", "vad_filter"},
	}
}

// Recognize implements pipeline.Recognizer.
func (t Transcriptions) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	return startSegments(ctx, s.Rate, t.upload(s).transcribe), nil
}

// Probe implements pipeline.Prober.
func (t Transcriptions) Probe(ctx context.Context, s pipeline.Stream) error {
	_, err := t.upload(s).transcribe(ctx, segment{pcm: make([]int16, s.Rate/10)})
	if err != nil {
		return fmt.Errorf("%s: %w", transcriptionsName, err)
	}
	return nil
}

// upload returns the settings for the requests of a stream.
func (t Transcriptions) upload(s pipeline.Stream) upload {
	model := WhisperModel
	if t.URL == "" || strings.HasPrefix(t.URL, TranscriptionsURL) {
		model = TranscriptionsModel
	}
	s.Model = cmp.Or(s.Model, model)
	u := upload{
		url: strings.TrimSuffix(cmp.Or(t.URL, TranscriptionsURL), "/") + "/audio/transcriptions", header: t.Header.Clone(),
		client: cmp.Or(t.Client, http.DefaultClient), rate: s.Rate, fields: transcriptionFields(s),
	}
	if u.header == nil {
		u.header = http.Header{}
	}
	if t.Key != "" {
		u.header.Set("Authorization", "Bearer "+string(t.Key))
	}
	return u
}

// A field is a form field.
type field struct{ name, value string }

// transcriptionFields returns the form fields except the file. OpenAI's models with "transcribe" in
// the name accept only the format json.
func transcriptionFields(s pipeline.Stream) []field {
	all := []field{{"model", s.Model}}
	add := func(name, value string) { all = append(all, field{name, value}) }
	extra := s.Options.Extra
	format := "verbose_json"
	if strings.Contains(s.Model, "transcribe") {
		format = "json"
	}
	if x, ok := extra["response_format"].(string); ok {
		format = x
	}
	add("response_format", format)
	if format == "verbose_json" {
		add("timestamp_granularities[]", "word")
		add("timestamp_granularities[]", "segment")
	}
	languages, terms := baseLanguages(languagesOf(s)), s.Options.KeyTerms
	switch {
	case hasKeywords(s.Model):
		for _, language := range languages {
			add("languages[]", language)
		}
		for _, term := range terms {
			add("keywords[]", term)
		}
	default:
		if len(languages) == 1 { // the model detects which of several languages is spoken
			add("language", languages[0])
		}
		if _, given := extra["prompt"]; len(terms) > 0 && !given {
			add("prompt", strings.Join(terms, ", "))
		}
	}
	if x := s.Options.Temperature; x != nil {
		add("temperature", parameterTexts(*x)[0])
	}
	return append(all, extraFields(extra)...)
}

// extraFields returns the form fields for the parameters in Options.Extra, except reserved ones.
func extraFields(extra map[string]any) []field {
	var all []field
	rules := Transcriptions{}.OptionRules()
	for name, value := range extra {
		if name != "response_format" && !slices.Contains(rules.Reserved, name) {
			for _, text := range parameterTexts(value) {
				all = append(all, field{name, text})
			}
		}
	}
	return all
}
