package asr

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/resample"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Defaults of OpenAI.
const (
	OpenAIURL   = "wss://api.openai.com/v1/realtime"
	OpenAIModel = "gpt-live-transcribe"
)

const openAIRate = 24000 // sample rate of audio/pcm in Hz

// OpenAI transcribes with a transcription session of the realtime API
// (developers.openai.com/api/docs/guides/realtime-transcription). The API reports no word times.
// Models other than gpt-live-transcribe and gpt-realtime-whisper send text only after Finalize.
// Local servers rarely have this API; use Transcriptions for them.
type OpenAI struct {
	URL    string // empty means OpenAIURL
	Key    media.Secret
	Header http.Header // sent with the request; may be nil
	Dial   wsdial.DialFunc
}

// OptionRules implements pipeline.RuledProvider.
func (OpenAI) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes:    []string{"keyterms", "languages", "options"},
		Reserved: []string{"keywords", "language", "languages", "model"},
		Known:    []string{"delay", "prompt"},
	}
}

// Recognize implements pipeline.Recognizer.
func (o OpenAI) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	s.Model = cmp.Or(s.Model, OpenAIModel)
	hello, err := openAISession(s)
	if err != nil {
		return nil, fmt.Errorf("openai transcription: %w", err)
	}
	header := o.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if o.Key != "" {
		header.Set("Authorization", "Bearer "+string(o.Key))
	}
	items := openAIItems{}
	return asRecognition(open(ctx, protocol{
		name: "openai transcription", hello: hello, finalize: `{"type":"input_audio_buffer.commit"}`,
		bye:   `{"type":"input_audio_buffer.clear"}`,
		chunk: 60 * time.Millisecond, maxSilent: 1, finalizeOnly: !streamsDeltas(s.Model), pack: openAIPack(s.Rate), parse: items.parse,
	}, s.Rate, cmp.Or(o.URL, OpenAIURL), url.Values{"intent": {"transcription"}}, header, o.Dial))
}

// streamsDeltas reports whether the model sends text before Finalize.
func streamsDeltas(model string) bool {
	return strings.HasPrefix(model, "gpt-live-transcribe") || strings.HasPrefix(model, "gpt-realtime-whisper")
}

// hasKeywords reports whether the model accepts lists of languages and keywords
// (developers.openai.com/api/reference/resources/realtime, AudioTranscription).
func hasKeywords(model string) bool {
	return strings.HasPrefix(model, "gpt-live-transcribe") || strings.HasPrefix(model, "gpt-transcribe")
}

// openAISession returns the message session.update. It disables the server's turn detection.
func openAISession(s pipeline.Stream) (string, error) {
	type object = map[string]any
	format := object{"type": "audio/pcmu"}
	if s.Rate != telephone {
		format = object{"type": "audio/pcm", "rate": openAIRate}
	}
	transcription := object{"model": s.Model}
	languages, terms := baseLanguages(languagesOf(s)), s.Options.KeyTerms
	switch {
	case hasKeywords(s.Model):
		if len(languages) > 0 {
			transcription["languages"] = languages
		}
		if len(terms) > 0 {
			transcription["keywords"] = terms
		}
	default:
		if len(languages) == 1 { // without this field, the model detects the language
			transcription["language"] = languages[0]
		}
		if len(terms) > 0 && !strings.HasPrefix(s.Model, "gpt-realtime-whisper") { // gpt-realtime-whisper has no prompt
			transcription["prompt"] = strings.Join(terms, ", ")
		}
	}
	addFields(transcription, s.Options.Extra, OpenAI{}.OptionRules())
	b, err := json.Marshal(object{"type": "session.update", "session": object{
		"type": "transcription",
		"audio": object{"input": object{
			"format": format, "transcription": transcription, "turn_detection": nil,
		}},
	}})
	return string(b), err
}

// openAIPack returns a function that wraps audio in base64 messages. The function resamples audio to
// openAIRate unless the rate is 8 kHz.
func openAIPack(rate int) func([]byte) (message, error) {
	var convert *resample.Resampler
	if rate != telephone {
		convert = resample.New(rate, openAIRate)
	}
	return func(sound []byte) (message, error) {
		if convert != nil {
			pcm := make([]int16, len(sound)/2)
			for i := range pcm {
				pcm[i] = int16(uint16(sound[2*i]) | uint16(sound[2*i+1])<<8) //nolint:gosec // two's complement
			}
			sound = nil
			for _, x := range convert.Resample(nil, pcm) {
				sound = append(sound, byte(x), byte(uint16(x)>>8)) //nolint:gosec // little-endian
			}
		}
		const head, tail = `{"type":"input_audio_buffer.append","audio":"`, `"}`
		b := make([]byte, 0, len(head)+len(tail)+base64.StdEncoding.EncodedLen(len(sound)))
		b = append(base64.StdEncoding.AppendEncode(append(b, head...), sound), tail...)
		return message{kind: websocket.TextMessage, body: b}, nil
	}
}

// openAIMessage holds the fields of a message that this client uses.
type openAIMessage struct {
	Type       string `json:"type"`
	Item       string `json:"item_id"`
	Delta      string `json:"delta"`
	Transcript string `json:"transcript"`
	Error      struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// maxTranscript bounds a partial transcript in bytes.
const maxTranscript = 64 << 10

// openAIItems holds the partial transcripts by item name.
type openAIItems map[string]string

func (o openAIItems) parse(b []byte) (update, error) {
	var m openAIMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	switch strings.TrimPrefix(m.Type, "conversation.item.input_audio_transcription.") {
	case "delta":
		if _, ok := o[m.Item]; !ok && len(o) >= maxAbandoned {
			clear(o) // the provider did not complete these items
		}
		if o[m.Item] += m.Delta; len(o[m.Item]) > maxTranscript {
			return update{}, fmt.Errorf("transcript of more than %d bytes", maxTranscript)
		}
		return update{item: m.Item, Result: pipeline.Result{Text: strings.TrimSpace(o[m.Item])}}, nil
	case "completed":
		delete(o, m.Item)
		return update{item: m.Item, answer: true, Result: pipeline.Result{Text: strings.TrimSpace(m.Transcript), Final: true}}, nil
	case "failed", "error":
		if m.Error.Code == "input_audio_buffer_commit_empty" {
			return update{Result: pipeline.Result{Final: true}, answer: true}, nil // there was no audio
		}
		return update{}, &pipeline.RefusedError{
			Status: openAIStatus(m.Error.Type, m.Error.Code), Text: strings.TrimPrefix(m.Error.Code+": "+m.Error.Message, ": "),
		}
	case "input_audio_buffer.committed":
		return update{empty: true, named: true, item: m.Item}, nil
	default: // session.created, session.updated and unknown types
		return update{empty: true}, nil
	}
}

// openAIStatus maps the type and the code of an error event to the status that the HTTP API uses for
// the same error (developers.openai.com/api/docs/guides/error-codes).
func openAIStatus(kind, code string) int {
	switch {
	case code == "invalid_api_key" || kind == "authentication_error":
		return http.StatusUnauthorized
	case kind == "permission_error" || code == "unsupported_country_region_territory":
		return http.StatusForbidden
	case code == "insufficient_quota" || strings.HasPrefix(code, "rate_limit") || strings.HasPrefix(kind, "rate_limit"):
		return http.StatusTooManyRequests
	case code == "session_expired": // sessions end after 60 minutes; a new one works
		return http.StatusServiceUnavailable
	case kind == "invalid_request_error": // unknown model or language
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}
