package asr

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// AssemblyAIURL is the default endpoint.
const AssemblyAIURL = "wss://streaming.assemblyai.com/v3/ws"

// AssemblyAI transcribes with the streaming API, version 3
// (assemblyai.com/docs/streaming/message-sequence).
type AssemblyAI struct {
	URL  string // empty means AssemblyAIURL
	Key  media.Secret
	Dial wsdial.DialFunc
}

// OptionRules implements pipeline.RuledProvider.
func (AssemblyAI) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"keyterms", "languages", "options"},
		Reserved: []string{
			"acknowledge_silence", "encoding", "inactivity_timeout", "keyterms_prompt", "language_code", "language_codes",
			"max_turn_silence", "min_turn_silence", "sample_rate", "session_heartbeat", "speech_model",
		},
		Known: []string{
			"agent_context", "continuous_partials", "domain", "end_of_turn_confidence_threshold", "filter_profanity", "format_turns",
			"interruption_delay", "language_detection", "mode", "prompt", "redact_pii", "redact_pii_policies", "redact_pii_sub",
			"turn_left_pad_ms", "vad_threshold", "voice_focus", "voice_focus_threshold",
		},
	}
}

// Recognize implements pipeline.Recognizer.
func (a AssemblyAI) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	model := assemblyModel(s)
	turns, maxSilent := assemblyTurns{last: -1}, 0
	if isUniversalPro(model) {
		// Universal-3 Pro models send Heartbeat and Silence messages about every second. Other models
		// send nothing while nobody speaks.
		maxSilent = 2
	}
	return asRecognition(open(ctx, protocol{
		name: "assemblyai", finalize: `{"type":"ForceEndpoint"}`, bye: `{"type":"Terminate"}`,
		chunk: 60 * time.Millisecond, fullChunks: true, // AssemblyAI rejects chunks below 50 ms
		maxSilent: maxSilent, parse: turns.parse, closeStatus: assemblyStatus,
	}, s.Rate, cmp.Or(a.URL, AssemblyAIURL), assemblyQuery(s, model), http.Header{"Authorization": {string(a.Key)}}, a.Dial))
}

// assemblyModel returns the model of the stream or a default. The default is Universal-3.6 Pro if
// its documentation names all languages of the stream. Otherwise it is Whisper, which detects 99
// languages (assemblyai.com/docs/streaming/select-the-speech-model,
// assemblyai.com/docs/streaming/whisper-streaming). The older universal-streaming models are not
// a default: they know six languages and transcribe any other language as words of these six.
func assemblyModel(s pipeline.Stream) string {
	model := "universal-3-6-pro"
	for _, language := range baseLanguages(languagesOf(s)) {
		if !slices.Contains([]string{"en", "es", "fr", "de", "it", "pt", "hi", "zh"}, language) {
			model = "whisper-rt"
		}
	}
	return cmp.Or(s.Model, model)
}

// isUniversalPro reports whether the model belongs to the Universal-3 Pro family. Only that family
// has heartbeats and the parameter language_codes.
func isUniversalPro(model string) bool {
	return strings.HasPrefix(model, "universal-3") || strings.HasPrefix(model, "u3-")
}

func assemblyQuery(s pipeline.Stream, model string) url.Values {
	q := url.Values{
		"sample_rate": {strconv.Itoa(s.Rate)}, "encoding": {"pcm_mulaw"}, "speech_model": {model},
		"min_turn_silence": {"100"}, "max_turn_silence": {"1000"},
	}
	if s.Rate != telephone {
		q.Set("encoding", "pcm_s16le")
	}
	if isUniversalPro(model) {
		q.Set("session_heartbeat", "true")
		q.Set("acknowledge_silence", "true")
		if all := baseLanguages(languagesOf(s)); len(all) > 0 {
			q.Set("language_codes", jsonList(all))
		}
	}
	if terms := s.Options.KeyTerms; len(terms) > 0 && model != "whisper-rt" {
		q.Set("keyterms_prompt", jsonList(terms))
	}
	addParameters(q, s.Options.Extra, AssemblyAI{}.OptionRules())
	return q
}

// jsonList returns the list as a JSON array: AssemblyAI's form of a list in a query parameter.
func jsonList(all []string) string {
	b, err := json.Marshal(all)
	if err != nil { // strings can always be encoded
		return "[]"
	}
	return string(b)
}

// assemblyStatus maps an error code to an HTTP status, or to 0 if it knows none. AssemblyAI sends the
// code in an Error message and again as the close code
// (assemblyai.com/docs/streaming/common-session-errors-and-closures and the SDK for JavaScript).
func assemblyStatus(code int) int {
	switch code {
	case 3006, 3007, 4000, 4032, 4033, 4034, 4101: // invalid input, audio chunk or sample rate
		return http.StatusBadRequest
	case websocket.ClosePolicyViolation, 4001:
		return http.StatusUnauthorized
	case 4002, 4003: // no funds, or a feature of a higher plan
		return http.StatusPaymentRequired
	case 3009, 4029, 4102: // too many streams or requests
		return http.StatusTooManyRequests
	case 3005, 3008: // server error, or the session has expired
		return http.StatusServiceUnavailable
	default:
		return 0
	}
}

// assemblyMessage holds the fields of a message that this client uses. Word times are in milliseconds.
type assemblyMessage struct {
	Type       string  `json:"type"`
	Order      int     `json:"turn_order"`
	Transcript string  `json:"transcript"`
	EndOfTurn  bool    `json:"end_of_turn"`
	Confidence float64 `json:"end_of_turn_confidence"`
	Error      string  `json:"error"`
	Code       int     `json:"error_code"`
	Words      []struct {
		Text  string  `json:"text"`
		Start float64 `json:"start"`
		End   float64 `json:"end"`
	} `json:"words"`
}

// assemblyTurns parses messages. last is the order of the last finished turn: AssemblyAI may repeat
// that turn with other punctuation, and the parser then ignores it.
type assemblyTurns struct{ last int }

func (t *assemblyTurns) parse(b []byte) (update, error) {
	var m assemblyMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	switch {
	case m.Type == "Error" || m.Error != "":
		return update{}, &pipeline.RefusedError{
			Status: cmp.Or(assemblyStatus(m.Code), http.StatusInternalServerError), Text: m.Error,
		}
	case m.Type == "Heartbeat" || m.Type == "Silence":
		return update{alive: true}, nil
	case m.Type != "Turn" || m.Order <= t.last: // Begin, SpeechStarted, Termination and unknown types need no action
		return update{empty: true}, nil
	}
	h := update{Result: pipeline.Result{Text: m.Transcript, Final: m.EndOfTurn}, answer: m.EndOfTurn}
	var texts []string
	for _, w := range m.Words {
		texts = append(texts, w.Text)
		h.Words = append(h.Words, pipeline.Word{Text: w.Text, Start: millis(w.Start), End: millis(w.End)})
	}
	if all := strings.Join(texts, " "); !m.EndOfTurn && len(all) > len(h.Text) {
		h.Text = all // the transcript omits words that are not final
	}
	h.Start, h.End = span(timedWords(h.Words), 0, 0)
	if m.EndOfTurn {
		t.last, h.EndOfTurn = m.Order, clampProbability(m.Confidence)
	} else if h.Text == "" {
		h.empty = true
	}
	return h, nil
}
