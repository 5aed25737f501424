package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Defaults of ElevenLabs.
const (
	ElevenLabsURL   = "wss://api.elevenlabs.io"
	ElevenLabsModel = "eleven_flash_v2_5"
	ElevenLabsVoice = "21m00Tcm4TlvDq8ikWAM"
)

// ElevenLabs uses the streaming text-to-speech API
// (elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-stream-input).
// A connection serves one utterance.
type ElevenLabs struct {
	URL  string // scheme and host; empty means ElevenLabsURL
	Key  media.Secret
	Dial wsdial.DialFunc
	Warm *Pool // nil opens a connection per utterance; Idle must be below 3 min
}

// Open implements pipeline.Voice.
func (e ElevenLabs) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	format, err := elevenLabsFormat(s.Rate)
	if err != nil {
		return nil, err
	}
	q := url.Values{
		"model_id": {cmp.Or(s.Model, ElevenLabsModel)}, "output_format": {format},
		"auto_mode": {"true"}, "sync_alignment": {"true"}, "inactivity_timeout": {"180"}, // the maximum
	}
	if language := elevenLabsLanguage(q.Get("model_id"), s.Language); language != "" {
		q.Set("language_code", language)
	}
	address := strings.TrimSuffix(cmp.Or(e.URL, ElevenLabsURL), "/") +
		"/v1/text-to-speech/" + url.PathEscape(cmp.Or(s.Voice, ElevenLabsVoice)) + "/stream-input"
	sock, err := e.Warm.get(ctx, address+"?"+q.Encode(), func(ctx context.Context) (*socket, error) {
		return e.connect(ctx, address, q)
	})
	if err != nil {
		return nil, err
	}
	sp := &elevenSynthesis{socket: sock, rate: s.Rate}
	sp.unhook = context.AfterFunc(ctx, sock.close)
	return sp, nil
}

// connect opens a connection and sends its configuration.
func (e ElevenLabs) connect(ctx context.Context, address string, q url.Values) (*socket, error) {
	sock, err := peer{name: "elevenlabs", header: http.Header{"Xi-Api-Key": {string(e.Key)}}, dial: e.Dial}.open(ctx, address, q)
	if err != nil {
		return nil, err
	}
	if err := sock.send(map[string]any{"text": " ", "generation_config": map[string]any{"chunk_length_schedule": []int{50}}}); err != nil {
		sock.close()
		return nil, err
	}
	return sock, nil
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

// elevenLabsLanguage returns the language_code to request. Only the version 2.5 models
// accept it; it is empty for languages that they do not support. Without it they guess,
// and may read numbers in another language.
func elevenLabsLanguage(model, language string) string {
	language, _, _ = strings.Cut(strings.ToLower(language), "-")
	const spoken = " ar bg cs da de el en es fi fil fr hi hr hu id it ja ko ms nl no pl pt ro ru sk sv ta tr uk vi zh "
	if !strings.HasSuffix(model, "_v2_5") || language == "" || !strings.Contains(spoken, " "+language+" ") {
		return ""
	}
	return language
}

// elevenSynthesis is one utterance.
type elevenSynthesis struct {
	*socket
	rate   int
	unhook func() bool

	split Splitter // owned by the writer

	duration time.Duration // speech so far; owned by the reader
	word     strings.Builder
	from     time.Duration // start of word
}

// Write implements pipeline.Synthesis. It sends whole clauses with a trailing space,
// because auto_mode speaks each piece as it is.
func (e *elevenSynthesis) Write(text string) error {
	for _, c := range e.split.Add(text) {
		if err := e.send(map[string]any{"text": c + " "}); err != nil {
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

// elevenMessage is a message of the API.
type elevenMessage struct {
	Audio     []byte `json:"audio"` // base64
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
			if err != nil {
				yield(pipeline.Speech{}, fmt.Errorf("elevenlabs: %w", err))
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
	var m elevenMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("not JSON: %w", err)
	}
	if m.Error == "" {
		return m, nil
	}
	text := pipeline.Clean(m.Error + ": " + m.Message)
	// invalid requests such as voice_does_not_exist
	for _, word := range []string{"voice_", "model_", "language_", "unsupported_", "invalid_uid"} {
		if strings.Contains(m.Error, word) {
			return m, &pipeline.RefusedError{Status: http.StatusBadRequest, Text: text}
		}
	}
	return m, errors.New(text)
}

func (e *elevenSynthesis) speech(m elevenMessage) pipeline.Speech {
	var sp pipeline.Speech
	sp.PCM = samples(m.Audio, e.rate)
	if a := m.Alignment; a != nil && len(a.Starts) == len(a.Chars) {
		sp.Words = e.words(a.Chars, a.Starts)
	}
	e.duration += time.Duration(len(sp.PCM)) * time.Second / time.Duration(e.rate)
	if m.IsFinal && e.word.Len() > 0 {
		sp.Words = append(sp.Words, pipeline.Word{Text: e.word.String(), Start: e.from, End: e.duration})
		e.word.Reset()
	}
	return sp
}

// samples decodes speech: µ-law at 8 kHz, else 16-bit little-endian PCM.
func samples(b []byte, rate int) []int16 {
	if rate != telephone {
		return samples16(b)
	}
	pcm := make([]int16, len(b))
	codec.PCMU{}.Decode(pcm, b)
	return pcm
}

// words turns timed characters into timed words. Times count from the start of the
// utterance or of the message; the latter if they lie before the speech received so far.
func (e *elevenSynthesis) words(chars []string, starts []int) []pipeline.Word {
	var base time.Duration
	const slack = 50 * time.Millisecond
	if len(starts) > 0 && time.Duration(starts[0])*time.Millisecond+slack < e.duration {
		base = e.duration
	}
	var words []pipeline.Word
	for i, c := range chars {
		start := base + time.Duration(starts[i])*time.Millisecond
		if strings.TrimSpace(c) == "" {
			if e.word.Len() > 0 {
				words = append(words, pipeline.Word{Text: e.word.String(), Start: e.from, End: start})
				e.word.Reset()
			}
			continue
		}
		if e.word.Len() == 0 {
			e.from = start
		}
		e.word.WriteString(c)
	}
	return words
}
