package tts

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Defaults of OpenAI.
const (
	OpenAIURL   = "https://api.openai.com/v1"
	OpenAIModel = "gpt-4o-mini-tts"
	OpenAIVoice = "alloy"
)

const openAIRate = 24000 // sample rate of response_format pcm in Hz

// OpenAI uses the audio speech API (platform.openai.com/docs/api-reference/audio/createSpeech) of
// OpenAI, Azure OpenAI, AssemblyAI, speaches, Kokoro-FastAPI and servers of Piper. The media type
// of the response selects the decoder. OpenAI itself shuts its speech models down on
// January 6, 2027 (developers.openai.com/api/docs/guides/text-to-speech).
type OpenAI struct {
	URL    string // base URL without /audio/speech, perhaps with a query; empty means OpenAIURL
	Key    media.Secret
	Header http.Header  // further headers of each request, such as the api-key of Azure; may hold keys
	Client *http.Client // nil means http.DefaultClient; must not have a Timeout
	Format string       // "pcm" or "wav"; empty means "pcm"
	Events bool         // requests the audio as server-sent events
	Model  string       // model of styles that name none; empty means OpenAIModel
	Voice  string       // voice of styles that name none; empty means OpenAIVoice
}

// OptionRules implements pipeline.RuledProvider.
func (o OpenAI) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes:    []string{"speed", "instructions", "options"},
		Reserved: []string{"model", "voice", "input", "response_format", "stream_format", "speed", "instructions"},
		Known:    []string{"lang_code", "volume_multiplier", "normalization_options", "sample_rate"},
	}
}

// Open implements pipeline.Voice. The API has no parameter for the language, so the voice or
// the model must fit it.
func (o OpenAI) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	address, err := endpoint(cmp.Or(o.URL, OpenAIURL), "/audio/speech")
	if err != nil {
		return nil, fmt.Errorf("openai speech: %w", err)
	}
	return newClauseSynthesis(ctx, s.Rate, func(ctx context.Context, clause string) (io.ReadCloser, int, error) {
		return o.speak(ctx, address, s, clause)
	}), nil
}

func (o OpenAI) speak(ctx context.Context, address string, s pipeline.Style, clause string) (io.ReadCloser, int, error) {
	post := pipeline.JSONClient{URL: address, Key: o.Key, Header: o.Header, Client: o.Client}
	own := map[string]any{
		"model": cmp.Or(s.Model, o.Model, OpenAIModel), "voice": cmp.Or(s.Voice, o.Voice, OpenAIVoice),
		"input": clause, "response_format": cmp.Or(o.Format, "pcm"),
	}
	if o.Events {
		own["stream_format"] = "sse"
	}
	if speed := within(s.Options.Speed, 0.25, 4); speed != 0 {
		own["speed"] = speed
	}
	if s.Options.Instructions != "" {
		own["instructions"] = s.Options.Instructions
	}
	ask := withExtra(s.Options, own)
	resp, err := post.Do(ctx, ask)
	if err != nil {
		return nil, 0, fmt.Errorf("openai speech: %w", err)
	}
	pcm, rate, err := sound(resp)
	if err != nil {
		_ = resp.Body.Close() // the rest of the response is not needed
		return nil, 0, fmt.Errorf("openai speech: %w", err)
	}
	return readCloser{pcm, resp.Body}, rate, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// sound returns the 16-bit mono PCM in a response and its rate in Hz.
func sound(resp *http.Response) (pcm io.Reader, rate int, err error) {
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = "" // an invalid media type counts as unknown
	}
	rate = openAIRate
	if hz, err := strconv.Atoi(cmp.Or(params["rate"], params["sample_rate"])); err == nil {
		if rate = hz; rate < 8000 || rate > 48000 {
			return nil, 0, fmt.Errorf("unsupported speech rate of %d Hz; accepted: 8000 to 48000", rate)
		}
	}
	switch kind {
	case "text/event-stream":
		return newAudioEvents(resp.Body, resp.Request), rate, nil
	case "", "application/octet-stream", "binary/octet-stream", "audio/pcm", "audio/l16", "audio/x-pcm",
		"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
	default:
		return nil, 0, fmt.Errorf("unsupported media type %.40q; accepted: PCM, WAV and events", kind)
	}
	r := bufio.NewReader(resp.Body)
	if head, err := r.Peek(4); err == nil && string(head) == "RIFF" {
		rate, err = wavRate(r)
		return r, rate, err
	}
	return r, rate, nil
}

// audioEvents reads the audio in server-sent events.
type audioEvents struct {
	lines *bufio.Scanner
	sent  *http.Request // the request; its headers hold keys, which errors must not show
	rest  []byte
	done  bool
}

const maxEvent = 1 << 20 // bytes of one event

func newAudioEvents(r io.Reader, sent *http.Request) *audioEvents {
	a := &audioEvents{lines: bufio.NewScanner(r), sent: sent}
	a.lines.Buffer(make([]byte, 0, 4096), maxEvent)
	return a
}

// Read implements io.Reader.
func (a *audioEvents) Read(b []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.done {
			return 0, io.EOF
		}
		if !a.lines.Scan() {
			return 0, cmp.Or(a.lines.Err(), io.ErrUnexpectedEOF)
		}
		data, ok := bytes.CutPrefix(a.lines.Bytes(), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			a.done = true
			continue
		}
		if err := a.event(data); err != nil {
			return 0, err
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

func (a *audioEvents) event(data []byte) error {
	var m struct {
		Type  string          `json:"type"`
		Audio []byte          `json:"audio"` // audio in base64
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if m.Type == "error" || len(m.Error) > 0 && string(m.Error) != "null" {
		return eventError(data, a.sent)
	}
	a.rest, a.done = m.Audio, m.Type == "speech.audio.done"
	return nil
}

// eventError returns the error in an event: a RefusedError if the event states or implies an HTTP status.
func eventError(data []byte, sent *http.Request) error {
	var m struct {
		Error struct {
			Code any    `json:"code"` // a word or an HTTP status
			Type string `json:"type"`
		} `json:"error"`
	}
	text := pipeline.Redact(pipeline.ErrorMessage(data), sent.Header, sent.URL)
	if json.Unmarshal(data, &m) != nil { // some servers send the error as a string
		return errors.New(text)
	}
	status := statusOf(fmt.Sprint(m.Error.Type, " ", m.Error.Code))
	if code, ok := m.Error.Code.(float64); ok && code >= 400 && code < 600 {
		status = int(code)
	}
	if status == 0 {
		return errors.New(text)
	}
	return &pipeline.RefusedError{Status: status, Text: text}
}
