package asr

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
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
	OpenAIModel = "gpt-4o-mini-transcribe"
)

const openAIRate = 24000 // Hz of audio/pcm

// OpenAI transcribes with a transcription session of the realtime API, which gateways and
// speaches also serve (platform.openai.com/docs/guides/realtime-transcription). It reports
// no word times, and text only after Finalize.
type OpenAI struct {
	URL  string // empty means OpenAIURL
	Key  media.Secret
	Dial wsdial.DialFunc
}

// Recognize implements pipeline.Recognizer.
func (o OpenAI) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	hello, err := openAISession(s)
	if err != nil {
		return nil, fmt.Errorf("openai transcription: %w", err)
	}
	items := openAIItems{}
	return asRecognition(open(ctx, protocol{
		name: "openai transcription", hello: hello, finalize: `{"type":"input_audio_buffer.commit"}`,
		bye:   `{"type":"input_audio_buffer.clear"}`,
		chunk: 60 * time.Millisecond, maxSilent: 1, finalizeOnly: true, pack: openAIPack(s.Rate), parse: items.parse,
	}, s.Rate, cmp.Or(o.URL, OpenAIURL), url.Values{"intent": {"transcription"}},
		http.Header{"Authorization": {"Bearer " + string(o.Key)}}, o.Dial))
}

// openAISession returns the configuration message. Turn detection of the server is
// disabled.
func openAISession(s pipeline.Stream) (string, error) {
	type object = map[string]any
	format := object{"type": "audio/pcmu"}
	if s.Rate != telephone {
		format = object{"type": "audio/pcm", "rate": openAIRate}
	}
	transcription := object{"model": cmp.Or(s.Model, OpenAIModel)}
	if lang, _, _ := strings.Cut(s.Language, "-"); lang != "" {
		transcription["language"] = lang
	}
	b, err := json.Marshal(object{"type": "session.update", "session": object{
		"type": "transcription",
		"audio": object{"input": object{
			"format": format, "transcription": transcription, "turn_detection": nil,
		}},
	}})
	return string(b), err
}

// openAIPack wraps audio in base64 messages.
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

// openAIMessage holds the used fields of a message.
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

// openAIItems holds the partial transcripts by item name.
type openAIItems map[string]string

// parse reads a message.
func (o openAIItems) parse(b []byte) (update, error) {
	var m openAIMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return update{}, fmt.Errorf("not JSON: %w", err)
	}
	switch strings.TrimPrefix(m.Type, "conversation.item.input_audio_transcription.") {
	case "delta":
		if _, ok := o[m.Item]; !ok && len(o) >= maxAbandoned {
			clear(o) // they were never completed
		}
		o[m.Item] += m.Delta
		return update{item: m.Item, Result: pipeline.Result{Text: strings.TrimSpace(o[m.Item])}}, nil
	case "completed":
		delete(o, m.Item)
		return update{item: m.Item, answer: true, Result: pipeline.Result{Text: strings.TrimSpace(m.Transcript), Final: true}}, nil
	case "failed", "error":
		if m.Error.Code == "input_audio_buffer_commit_empty" {
			return update{Result: pipeline.Result{Final: true}, answer: true}, nil // there was no audio
		}
		text := pipeline.Clean(m.Error.Code + ": " + m.Error.Message)
		if m.Error.Type == "invalid_request_error" && m.Error.Code != "invalid_api_key" { // unknown model or language
			return update{}, &pipeline.RefusedError{Status: http.StatusBadRequest, Text: text}
		}
		return update{}, errors.New(text)
	case "input_audio_buffer.committed":
		return update{empty: true, named: true, item: m.Item}, nil
	default: // session.created, session.updated and unknown types
		return update{empty: true}, nil
	}
}
