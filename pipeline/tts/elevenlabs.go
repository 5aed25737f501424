package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Defaults of ElevenLabs.
const (
	ElevenLabsURL   = "wss://api.elevenlabs.io"
	ElevenLabsModel = "eleven_flash_v2_5"
	// ElevenLabsVoice is one of the default voices of 2026, which every account may use without a plan
	// (github.com/livekit/agents/pull/5020). Earlier default voices, such as Rachel, became library
	// voices: ElevenLabs refuses them to free accounts with status 402.
	ElevenLabsVoice = "hpp4J3VqNfWAUOO0d1Us"
)

// ElevenLabs uses the streaming text-to-speech API
// (elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-stream-input).
//
// A connection serves one utterance; Warm opens the next connection in advance. The API's
// connections for several contexts would save handshakes, but each is limited to one voice and five
// contexts. It ends, with all its contexts, if one request is refused or an interrupted context is
// not closed in time (github.com/livekit/agents/issues/5844).
type ElevenLabs struct {
	URL  string // scheme and host; empty means ElevenLabsURL
	Key  media.Secret
	Dial wsdial.DialFunc
	Warm *Pool // pool of open connections, whose Idle must be below 3 min; nil opens one for each utterance
}

// OptionRules implements pipeline.RuledProvider. Some models speak fewer languages.
func (ElevenLabs) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"speed", "options"},
		Reserved: []string{
			"model_id", "output_format", "auto_mode", "sync_alignment", "inactivity_timeout", "language_code", "text", "flush",
			"voice_settings", "generation_config", "speed",
		},
		Known: []string{
			"stability", "similarity_boost", "style", "use_speaker_boost", "apply_text_normalization",
			"apply_language_text_normalization", "enable_logging", "enable_ssml_parsing", "seed",
		},
		Languages: elevenLabsLanguages(ElevenLabsModel),
	}
}

// Open implements pipeline.Voice.
func (e ElevenLabs) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	model := cmp.Or(s.Model, ElevenLabsModel)
	if spoken := elevenLabsLanguages(model); spoken != nil {
		if err := checkLanguage("elevenlabs", "model "+model, elevenLabsLanguage(s.Language), spoken); err != nil {
			return nil, err
		}
	}
	q, greeting, err := elevenLabsRequest(model, s)
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(cmp.Or(e.URL, ElevenLabsURL), "/") +
		"/v1/text-to-speech/" + url.PathEscape(cmp.Or(s.Voice, ElevenLabsVoice)) + "/stream-input"
	sock, err := e.Warm.get(ctx, address+"?"+q.Encode()+"#"+string(greeting), func(ctx context.Context) (*socket, error) {
		return e.connect(ctx, address, q, greeting, s)
	})
	if err != nil {
		return nil, err
	}
	sp := &elevenSynthesis{socket: sock, rate: s.Rate}
	sp.unhook = context.AfterFunc(ctx, sock.close)
	return sp, nil
}

// elevenLabsRequest returns the query of a connection, and the first message to send on it.
func elevenLabsRequest(model string, s pipeline.Style) (q url.Values, greeting []byte, err error) {
	format, err := elevenLabsFormat(s.Rate)
	if err != nil {
		return nil, nil, err
	}
	q = url.Values{}
	settings := map[string]any{}
	for name, v := range s.Options.Extra {
		switch name {
		case "stability", "similarity_boost", "style", "use_speaker_boost":
			settings[name] = v
		default:
			q.Set(name, fmt.Sprint(v))
		}
	}
	if speed := within(s.Options.Speed, 0.7, 1.2); speed != 0 {
		settings["speed"] = speed
	}
	for name, v := range map[string]string{
		// 180 s is the longest inactivity_timeout that ElevenLabs accepts
		"model_id": model, "output_format": format, "auto_mode": "true", "sync_alignment": "true", "inactivity_timeout": "180",
	} {
		q.Set(name, v)
	}
	// Only the version 2.5 models accept a language. Other models guess the language, and may read
	// numbers in a wrong one.
	if language := elevenLabsLanguage(s.Language); language != "" && strings.HasSuffix(model, "_v2_5") {
		q.Set("language_code", language)
	}
	first := map[string]any{"text": " ", "generation_config": map[string]any{"chunk_length_schedule": []int{50}}}
	if len(settings) > 0 {
		first["voice_settings"] = settings
	}
	if greeting, err = json.Marshal(first); err != nil {
		return nil, nil, fmt.Errorf("elevenlabs: options: %w", err)
	}
	return q, greeting, nil
}

// connect opens a connection and sends greeting, its first message.
func (e ElevenLabs) connect(ctx context.Context, address string, q url.Values, greeting []byte, s pipeline.Style) (*socket, error) {
	p := peer{
		name: "elevenlabs", header: http.Header{"Xi-Api-Key": {string(e.Key)}}, dial: e.Dial,
		onClose: func(code int, reason string) (int, string) { return onElevenLabsClose(code, reason, s) },
	}
	sock, err := p.open(ctx, address, q)
	if err != nil {
		return nil, err
	}
	if err := sock.write(greeting); err != nil {
		sock.close()
		return nil, err
	}
	return sock, nil
}

// onElevenLabsClose implements peer.onClose. ElevenLabs refuses a voice that does not fit the model with close code
// 1008, or with 1009 (message too big) (github.com/elevenlabs/elevenlabs-python/issues/586). The names of the voice
// and the model are cut from the reason before statusOf searches it, because they may contain its keywords.
func onElevenLabsClose(code int, reason string, s pipeline.Style) (int, string) {
	switch code {
	case websocket.CloseMessageTooBig:
		return http.StatusBadRequest, reason + " (the voice may not fit the model)"
	case websocket.ClosePolicyViolation:
		return statusOf(without(without(reason, s.Voice), s.Model)), reason
	}
	return 0, ""
}

func without(text, name string) string {
	if name == "" {
		return text
	}
	return strings.ReplaceAll(text, name, "")
}

func elevenLabsFormat(rate int) (string, error) {
	switch rate {
	case 8000:
		return "ulaw_8000", nil
	case 16000, 22050, 24000, 44100:
		return fmt.Sprintf("pcm_%d", rate), nil
	default:
		return "", fmt.Errorf("elevenlabs: no output format of %d Hz; accepted: 8000, 16000, 22050, 24000, 44100", rate)
	}
}

// elevenLabsLanguages returns the languages of a model; nil if they are unknown
// (elevenlabs.io/docs/models).
func elevenLabsLanguages(model string) []string {
	multilingual := strings.Fields("en ja zh de hi fr ko pt it es id nl tr fil pl sv bg ro ar cs el fi hr ms sk da ta uk ru")
	switch model {
	case "eleven_flash_v2_5", "eleven_turbo_v2_5":
		return append(multilingual, "hu", "no", "vi")
	case "eleven_multilingual_v2":
		return multilingual
	case "eleven_flash_v2", "eleven_turbo_v2":
		return []string{"en"}
	}
	return nil
}

// elevenLabsLanguage returns ElevenLabs' code for the language of a BCP 47 tag.
func elevenLabsLanguage(tag string) string {
	switch base := baseLanguage(tag); base {
	case "nb", "nn":
		return "no"
	case "tl":
		return "fil"
	default:
		return base
	}
}

// elevenSynthesis is one utterance.
type elevenSynthesis struct {
	*socket
	rate   int
	unhook func() bool

	split Splitter // only the writing goroutine uses it

	duration time.Duration // duration of the speech so far; only the reading goroutine uses it
	word     charWords
}

// Write implements pipeline.Synthesis. It sends whole clauses with a trailing space and flushes
// each, because in auto_mode ElevenLabs speaks each piece without waiting for the next one.
func (e *elevenSynthesis) Write(text string) error {
	for _, c := range e.split.Add(text) {
		if err := e.send(map[string]any{"text": c + " ", "flush": true}); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements pipeline.Synthesis.
func (e *elevenSynthesis) Flush() error {
	if rest := e.split.End(); rest != "" {
		if err := e.send(map[string]any{"text": rest + " ", "flush": true}); err != nil {
			return err
		}
	}
	return e.send(map[string]any{"text": ""})
}

// Close implements pipeline.Synthesis. It closes the connection.
func (e *elevenSynthesis) Close() error {
	e.unhook()
	e.close()
	return nil
}

type elevenMessage struct {
	Audio     []byte `json:"audio"` // audio in base64
	IsFinal   bool   `json:"isFinal"`
	Error     string `json:"error"`
	Message   string `json:"message"`
	Alignment *struct {
		Chars  []string `json:"chars"`
		Starts []int    `json:"charStartTimesMs"`
	} `json:"alignment"`
}

// Audio implements pipeline.Synthesis.
func (e *elevenSynthesis) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for r := range e.in {
			m, err := parseEleven(r.body)
			if err == nil && m.Error != "" {
				err = e.refused(statusOf(m.Error), m.Error+": "+m.Message)
			}
			if err != nil {
				yield(pipeline.Speech{}, err)
				return
			}
			sp := e.speech(m)
			if (len(sp.PCM) > 0 || len(sp.Words) > 0) && !yield(sp, nil) || m.IsFinal {
				return
			}
		}
		if !e.closed() {
			yield(pipeline.Speech{}, e.err)
		}
	}
}

func parseEleven(b []byte) (elevenMessage, error) {
	m, err := pipeline.DecodeJSON[elevenMessage](b)
	if err != nil {
		return m, fmt.Errorf("elevenlabs: not JSON: %w", err)
	}
	return m, nil
}

func (e *elevenSynthesis) speech(m elevenMessage) pipeline.Speech {
	var sp pipeline.Speech
	sp.PCM = samples(m.Audio, e.rate)
	if a := m.Alignment; a != nil && len(a.Starts) == len(a.Chars) {
		sp.Words = e.words(a.Chars, a.Starts)
	}
	e.duration += time.Duration(len(sp.PCM)) * time.Second / time.Duration(e.rate)
	if m.IsFinal {
		sp.Words = e.word.end(sp.Words, e.duration)
	}
	return sp
}

// samples decodes speech: µ-law at 8 kHz, otherwise 16-bit little-endian PCM.
func samples(b []byte, rate int) []int16 {
	if rate != telephone {
		return samples16(b)
	}
	pcm := make([]int16, len(b))
	codec.PCMU{}.Decode(pcm, b)
	return pcm
}

// words turns timed characters into timed words. ElevenLabs counts the times from the start of the message or of the
// utterance. words assumes the message if the first time lies before the end of the speech received so far.
func (e *elevenSynthesis) words(chars []string, starts []int) []pipeline.Word {
	var base time.Duration
	const slack = 50 * time.Millisecond
	if len(starts) > 0 && time.Duration(starts[0])*time.Millisecond+slack < e.duration {
		base = e.duration
	}
	var words []pipeline.Word
	for i, c := range chars {
		words = e.word.add(words, c, base+time.Duration(starts[i])*time.Millisecond)
	}
	return words
}
