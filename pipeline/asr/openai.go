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
	"github.com/parley-voice/parley/pipeline/wire"
)

// OpenAI's defaults.
const (
	OpenAIURL   = "wss://api.openai.com/v1/realtime"
	OpenAIModel = "gpt-4o-mini-transcribe"
)

const openAIRate = 24000 // Hz of audio/pcm

// OpenAI recognizes speech by a transcription session of the realtime API, which
// gateways and speaches serve too (platform.openai.com/docs/guides/realtime-transcription).
// It tells no times of words, and words only after Finalize.
type OpenAI struct {
	URL  string // empty: OpenAIURL
	Key  media.Secret
	Dial wire.Dial
}

// Recognize implements pipeline.Recognizer.
func (o OpenAI) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	hello, err := openAISession(s)
	if err != nil {
		return nil, fmt.Errorf("openai transcription: %w", err)
	}
	items := openAIItems{}
	return opened(open(ctx, protocol{
		name: "openai transcription", hello: hello, finalize: `{"type":"input_audio_buffer.commit"}`,
		bye:   `{"type":"input_audio_buffer.clear"}`,
		chunk: 60 * time.Millisecond, quiet: 1, reticent: true, pack: openAIPack(s.Rate), parse: items.parse,
	}, s.Rate, cmp.Or(o.URL, OpenAIURL), url.Values{"intent": {"transcription"}},
		http.Header{"Authorization": {"Bearer " + string(o.Key)}}, o.Dial))
}

// openAISession is the message that says what is to be heard. The end of a turn
// is looked for here, not there.
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

// openAIPack makes messages of sound, which goes in base64.
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

// openAIMessage is what the API sends, as far as it matters here.
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

// openAIItems are the pieces of the items that are being understood, by name.
type openAIItems map[string]string

// parse returns what a message says.
func (o openAIItems) parse(b []byte) (heard, error) {
	var m openAIMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return heard{}, fmt.Errorf("not JSON: %w", err)
	}
	switch strings.TrimPrefix(m.Type, "conversation.item.input_audio_transcription.") {
	case "delta":
		if _, ok := o[m.Item]; !ok && len(o) >= mostLost {
			clear(o) // they are not completed any more
		}
		o[m.Item] += m.Delta
		return heard{item: m.Item, Result: pipeline.Result{Text: strings.TrimSpace(o[m.Item])}}, nil
	case "completed":
		delete(o, m.Item)
		return heard{item: m.Item, answer: true, Result: pipeline.Result{Text: strings.TrimSpace(m.Transcript), Final: true}}, nil
	case "failed", "error":
		if m.Error.Code == "input_audio_buffer_commit_empty" {
			return heard{Result: pipeline.Result{Final: true}, answer: true}, nil // there was nothing
		}
		text := pipeline.Clean(m.Error.Code + ": " + m.Error.Message)
		if m.Error.Type == "invalid_request_error" && m.Error.Code != "invalid_api_key" { // a model or a language that there is not
			return heard{}, &pipeline.RefusedError{Status: http.StatusBadRequest, Text: text}
		}
		return heard{}, errors.New(text)
	case "input_audio_buffer.committed":
		return heard{none: true, begun: true, item: m.Item}, nil
	default: // session.created, session.updated and what is yet to come
		return heard{none: true}, nil
	}
}
