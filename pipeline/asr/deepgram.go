package asr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// DeepgramURL is the default endpoint.
const DeepgramURL = "wss://api.deepgram.com/v1/listen"

// DeepgramModel is the default model.
const DeepgramModel = "nova-3"

// Deepgram transcribes with the streaming API, version 1
// (developers.deepgram.com/reference/speech-to-text/listen-streaming).
type Deepgram struct {
	URL  string // empty means DeepgramURL
	Key  media.Secret
	Dial wsdial.DialFunc
}

// OptionRules implements pipeline.RuledProvider.
func (Deepgram) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"keyterms", "languages", "options"},
		Reserved: []string{
			"callback", "callback_method", "channels", "detect_language", "encoding", "endpointing", "interim_results", "keyterm",
			"keywords", "language", "model", "multichannel", "no_delay", "punctuate", "sample_rate", "utterance_end_ms", "vad_events",
		},
		Known: []string{
			"detect_entities", "diarize", "dictation", "filler_words", "mip_opt_out", "numerals", "profanity_filter", "redact",
			"replace", "search", "smart_format", "tag", "version",
		},
	}
}

// Recognize implements pipeline.Recognizer.
func (d Deepgram) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	return asRecognition(open(ctx, protocol{
		name: "deepgram", alive: `{"type":"KeepAlive"}`, finalize: `{"type":"Finalize"}`, bye: `{"type":"CloseStream"}`,
		chunk: media.FrameTime, maxSilent: 1, parse: parseDeepgram, closeStatus: deepgramCloseStatus,
	}, s.Rate, cmp.Or(d.URL, DeepgramURL), deepgramQuery(s), http.Header{"Authorization": {"Token " + string(d.Key)}}, d.Dial))
}

// asRecognition returns a nil interface on error. A plain conversion would return a non-nil
// interface that holds a nil stream.
func asRecognition(s *stream, err error) (pipeline.Recognition, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func deepgramQuery(s pipeline.Stream) url.Values {
	model := cmp.Or(s.Model, DeepgramModel)
	q := url.Values{
		"encoding": {"mulaw"}, "sample_rate": {strconv.Itoa(s.Rate)}, "channels": {"1"},
		"interim_results": {"true"}, "endpointing": {"false"}, "punctuate": {"true"},
		"no_delay": {"true"}, "model": {model},
	}
	if s.Rate != telephone {
		q.Set("encoding", "linear16")
	}
	if language := deepgramLanguage(model, languagesOf(s)); language != "" {
		q.Set("language", language)
	}
	terms := "keywords" // source: developers.deepgram.com/docs/keywords
	if strings.HasPrefix(model, "nova-3") {
		terms = "keyterm" // source: developers.deepgram.com/docs/keyterm
	}
	if len(s.Options.KeyTerms) > 0 {
		q[terms] = s.Options.KeyTerms
	}
	addParameters(q, s.Options.Extra, Deepgram{}.OptionRules())
	return q
}

// timedWord is a word in a message of Deepgram or of a transcription server. Times are in seconds.
type timedWord struct {
	Word       string  `json:"word"`
	Punctuated string  `json:"punctuated_word"`
	Start      float64 `json:"start"`
	End        float64 `json:"end"`
}

// deepgramMessage holds the fields of a message that this client uses. Times are in seconds.
type deepgramMessage struct {
	Type         string  `json:"type"`
	IsFinal      bool    `json:"is_final"`
	FromFinalize bool    `json:"from_finalize"`
	Start        float64 `json:"start"`
	Duration     float64 `json:"duration"`
	Description  string  `json:"description"`
	Code         string  `json:"code"`
	Variant      string  `json:"variant"`
	Channel      struct {
		Alternatives []struct {
			Transcript string      `json:"transcript"`
			Confidence float64     `json:"confidence"`
			Words      []timedWord `json:"words"`
		} `json:"alternatives"`
	} `json:"channel"`
}

func parseDeepgram(b []byte) (update, error) {
	d, err := pipeline.DecodeJSON[deepgramMessage](b)
	// In messages of other types, fields may have other types. Unmarshal then decodes the rest.
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); err != nil && (!other || d.Type == "") {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	if d.Type != "Results" && d.Type != "Error" {
		return update{empty: true}, nil // Metadata, SpeechStarted and unknown types need no action
	}
	if err != nil {
		return update{}, fmt.Errorf("%s: %w", d.Type, err)
	}
	if d.Type == "Error" {
		return update{}, deepgramError(cmp.Or(d.Code, d.Variant), d.Description)
	}
	h := update{answer: d.FromFinalize, Result: pipeline.Result{
		Final: d.IsFinal, Start: seconds(d.Start), End: seconds(d.Start + d.Duration),
	}}
	if len(d.Channel.Alternatives) > 0 {
		best := d.Channel.Alternatives[0]
		h.Text, h.Confidence, h.Words = best.Transcript, best.Confidence, words(best.Words)
	}
	if h.Final && !h.answer { // unlike an interim result, a final one gains no words
		h.upTo = h.End
	}
	return h, nil
}

// deepgramError returns the error of an Error message of Deepgram or Flux. The status is 500 for
// timeouts (NET-0001) and internal errors, and 400 for all others, which are faults of the request
// (developers.deepgram.com/docs/stt-troubleshooting-websocket-data-and-net-errors).
func deepgramError(code, description string) error {
	status, all := http.StatusBadRequest, strings.ToUpper(code+" "+description)
	for _, sign := range []string{"NET-", "INTERNAL", "TIMEOUT", "UNAVAILABLE"} {
		if strings.Contains(all, sign) {
			status = http.StatusInternalServerError
		}
	}
	return &pipeline.RefusedError{Status: status, Text: strings.TrimPrefix(code+": "+description, ": ")}
}

// deepgramCloseStatus implements protocol.closeStatus. Deepgram closes with 1008 (DATA-0000) if it
// cannot decode the audio.
func deepgramCloseStatus(code int) int {
	if code == websocket.ClosePolicyViolation {
		return http.StatusBadRequest
	}
	return 0
}

func words(all []timedWord) []pipeline.Word {
	out := make([]pipeline.Word, 0, len(all))
	for _, w := range all {
		out = append(out, pipeline.Word{Text: cmp.Or(w.Punctuated, w.Word), Start: seconds(w.Start), End: seconds(w.End)})
	}
	return out
}

// span returns the start of the first and the end of the last word, or the given times if
// there are no words.
func span(words []pipeline.Word, start, end time.Duration) (from, to time.Duration) {
	if n := len(words); n > 0 {
		return words[0].Start, words[n-1].End
	}
	return start, end
}
