package asr

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/vad"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Defaults of Soniox.
const (
	SonioxURL   = "wss://stt-rt.soniox.com/transcribe-websocket"
	SonioxModel = "stt-rt-v5"
)

// Soniox transcribes with the real-time API (soniox.com/docs/api-reference/stt/websocket-api).
// Soniox understands a caller who mixes languages, such as Kazakh and Russian, within a sentence.
type Soniox struct {
	URL  string // empty means SonioxURL
	Key  media.Secret
	Dial wsdial.DialFunc
}

// OptionRules implements pipeline.RuledProvider.
func (Soniox) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"keyterms", "languages", "options"},
		Reserved: []string{
			"api_key", "audio_format", "context", "enable_endpoint_detection", "language_hints", "model", "num_channels", "sample_rate",
			"translation",
		},
		Known: []string{
			"client_reference_id", "enable_language_identification", "enable_speaker_diarization", "endpoint_latency_adjustment_level",
			"endpoint_sensitivity", "language_hints_strict", "max_endpoint_delay_ms",
		},
	}
}

// Recognize implements pipeline.Recognizer. It sends the key in a header of the handshake: from January 15, 2027,
// Soniox refuses a key in the first message (soniox.com/docs/guides/websocket-authentication).
func (x Soniox) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	hello, err := sonioxStart(s)
	if err != nil {
		return nil, fmt.Errorf("soniox: %w", err)
	}
	tokens := sonioxTokens{}
	return asRecognition(open(ctx, protocol{
		name: "soniox", hello: hello, alive: `{"type":"keepalive"}`, bye: "", // an empty message ends the audio
		finalize: fmt.Sprintf(`{"type":"finalize","trailing_silence_ms":%d}`, vad.Hangover.Milliseconds()),
		chunk:    60 * time.Millisecond, maxSilent: 2, parse: tokens.parse,
	}, s.Rate, cmp.Or(x.URL, SonioxURL), nil, http.Header{"Authorization": {"Bearer " + string(x.Key)}}, x.Dial))
}

// sonioxStart returns the first message.
func sonioxStart(s pipeline.Stream) (string, error) {
	m := map[string]any{
		"model": cmp.Or(s.Model, SonioxModel), "audio_format": "mulaw", "sample_rate": s.Rate, "num_channels": 1,
		"enable_endpoint_detection": true,
	}
	if s.Rate != telephone {
		m["audio_format"] = "pcm_s16le"
	}
	if hints := baseLanguages(languagesOf(s)); len(hints) > 0 {
		m["language_hints"] = hints
	}
	if len(s.Options.KeyTerms) > 0 {
		m["context"] = map[string]any{"terms": s.Options.KeyTerms}
	}
	addFields(m, s.Options.Extra, Soniox{}.OptionRules())
	b, err := json.Marshal(m)
	return string(b), err
}

// sonioxMessage holds the fields of a message that this client uses. Times are in milliseconds.
type sonioxMessage struct {
	Tokens       []sonioxToken   `json:"tokens"`
	FinalUpTo    float64         `json:"final_audio_proc_ms"`
	ErrorCode    json.RawMessage `json:"error_code"` // a number, or a string that holds one
	ErrorMessage string          `json:"error_message"`
}

// A sonioxToken is a word, a part of a word, a punctuation mark or a control token such as "<end>".
type sonioxToken struct {
	Text       string  `json:"text"`
	Start      float64 `json:"start_ms"`
	End        float64 `json:"end_ms"`
	Confidence float64 `json:"confidence"`
	IsFinal    bool    `json:"is_final"`
	Status     string  `json:"translation_status"`
}

const maxSonioxTokens = 2000 // most final tokens that wait for the end of the turn

// sonioxTokens collects the final tokens of the turn. Soniox sends each final token once.
type sonioxTokens struct{ final []sonioxToken }

func (x *sonioxTokens) parse(b []byte) (update, error) {
	var m sonioxMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	if len(m.ErrorCode) > 0 || m.ErrorMessage != "" {
		return update{}, sonioxError(m)
	}
	var h update
	var open []sonioxToken
	for _, t := range m.Tokens {
		switch {
		case t.Text == "<fin>": // Soniox has answered finalize
			h.answer, h.Final = true, true
		case t.Text == "<end>": // Soniox has detected the end of a turn
			h.Final = true
		case t.Status == "translation":
		case t.IsFinal:
			x.final = append(x.final, t)
		default:
			open = append(open, t)
		}
	}
	h.Final = h.Final || len(x.final) > maxSonioxTokens
	all := x.final
	if h.Final {
		x.final = nil
	} else {
		all = append(slices.Clip(all), open...)
	}
	h.Text, h.Words, h.Confidence = sonioxWords(all)
	h.Start, h.End = span(timedWords(h.Words), 0, 0)
	switch {
	case h.answer: // all audio before the Finalize is final
		h.End = max(h.End, millis(m.FinalUpTo))
		h.Start = min(h.Start, h.End)
		if h.Text == "" {
			h.Start = h.End
		}
	case h.Text == "":
		h.empty = true
	}
	return h, nil
}

// sonioxWords joins tokens into words. A token with a leading space begins a new word.
func sonioxWords(all []sonioxToken) (text string, words []pipeline.Word, confidence float64) {
	for _, t := range all {
		text += t.Text
		confidence += t.Confidence / float64(len(all))
		part := strings.TrimSpace(t.Text)
		if n := len(words); n == 0 || strings.HasPrefix(t.Text, " ") {
			if part != "" {
				words = append(words, pipeline.Word{Text: part, Start: millis(t.Start), End: millis(t.End)})
			}
		} else {
			words[n-1].Text += part
			words[n-1].End = max(words[n-1].End, millis(t.End))
		}
	}
	return strings.TrimSpace(text), words, confidence
}

// sonioxError returns the error of a message. Soniox's error codes are HTTP statuses
// (soniox.com/docs/stt/rt/error-handling).
func sonioxError(m sonioxMessage) error {
	var status int
	if err := json.Unmarshal([]byte(strings.Trim(string(m.ErrorCode), `"`)), &status); err != nil || status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	return &pipeline.RefusedError{Status: status, Text: m.ErrorMessage}
}
