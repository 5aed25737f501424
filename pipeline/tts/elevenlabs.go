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
	"github.com/parley-voice/parley/pipeline/clause"
	"github.com/parley-voice/parley/pipeline/wire"
)

// ElevenLabs' defaults.
const (
	ElevenLabsURL   = "wss://api.elevenlabs.io"
	ElevenLabsModel = "eleven_flash_v2_5"
	ElevenLabsVoice = "21m00Tcm4TlvDq8ikWAM"
)

// ElevenLabs speaks by the streaming text-to-speech API
// (elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-stream-input).
// A connection speaks one utterance.
type ElevenLabs struct {
	URL  string // scheme and host; empty: ElevenLabsURL
	Key  media.Secret
	Dial wire.Dial
	Warm *Warm // nil: each utterance connects; its Idle is to be less than 3 min
}

// Open implements pipeline.Voice.
func (e ElevenLabs) Open(ctx context.Context, s pipeline.Style) (pipeline.Speaking, error) {
	format, err := elevenLabsFormat(s.Rate)
	if err != nil {
		return nil, err
	}
	q := url.Values{
		"model_id": {cmp.Or(s.Model, ElevenLabsModel)}, "output_format": {format},
		"auto_mode": {"true"}, "sync_alignment": {"true"}, "inactivity_timeout": {"180"}, // the most there is
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
	sp := &elevenSpeaking{socket: sock, rate: s.Rate}
	sp.unhook = context.AfterFunc(ctx, sock.close)
	return sp, nil
}

// connect opens a connection and says how it is to be spoken.
func (e ElevenLabs) connect(ctx context.Context, address string, q url.Values) (*socket, error) {
	conn, err := wire.Open(ctx, "elevenlabs", address, q, http.Header{"Xi-Api-Key": {string(e.Key)}}, e.Dial)
	if err != nil {
		return nil, err
	}
	sock := newSocket("elevenlabs", conn)
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

// elevenLabsLanguage is the language_code to ask for, which only the models of
// version 2.5 take; empty for a language that these do not speak. Without it
// they guess, and read numbers in another language.
func elevenLabsLanguage(model, language string) string {
	language, _, _ = strings.Cut(strings.ToLower(language), "-")
	const spoken = " ar bg cs da de el en es fi fil fr hi hr hu id it ja ko ms nl no pl pt ro ru sk sv ta tr uk vi zh "
	if !strings.HasSuffix(model, "_v2_5") || language == "" || !strings.Contains(spoken, " "+language+" ") {
		return ""
	}
	return language
}

// elevenSpeaking is one utterance.
type elevenSpeaking struct {
	*socket
	rate   int
	unhook func() bool

	split clause.Splitter // the speaker's

	made time.Duration // of speech so far. The listener's
	word strings.Builder
	from time.Duration // where word begins
}

// Say implements pipeline.Speaking. Whole clauses are sent, each with a space
// behind it: with auto_mode each piece is spoken as it is.
func (e *elevenSpeaking) Say(text string) error {
	for _, c := range e.split.Add(text) {
		if err := e.send(map[string]any{"text": c + " "}); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements pipeline.Speaking.
func (e *elevenSpeaking) Flush() error {
	if rest := e.split.End(); rest != "" {
		if err := e.send(map[string]any{"text": rest + " ", "flush": true}); err != nil {
			return err
		}
	}
	return e.send(map[string]any{"text": ""})
}

// Close implements pipeline.Speaking. It cuts the connection: the utterance is
// over, heard or not.
func (e *elevenSpeaking) Close() error {
	e.unhook()
	e.close()
	return nil
}

// elevenMessage is what the API sends.
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

// Audio implements pipeline.Speaking.
func (e *elevenSpeaking) Audio() iter.Seq2[pipeline.Speech, error] {
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
	for _, word := range []string{"voice_", "model_", "language_", "unsupported_", "invalid_uid"} { // voice_does_not_exist and the like: asked for in vain
		if strings.Contains(m.Error, word) {
			return m, &pipeline.RefusedError{Status: http.StatusBadRequest, Text: text}
		}
	}
	return m, errors.New(text)
}

func (e *elevenSpeaking) speech(m elevenMessage) pipeline.Speech {
	var sp pipeline.Speech
	sp.PCM = samples(m.Audio, e.rate)
	if a := m.Alignment; a != nil && len(a.Starts) == len(a.Chars) {
		sp.Words = e.words(a.Chars, a.Starts)
	}
	e.made += time.Duration(len(sp.PCM)) * time.Second / time.Duration(e.rate)
	if m.IsFinal && e.word.Len() > 0 {
		sp.Words = append(sp.Words, pipeline.Word{Text: e.word.String(), Start: e.from, End: e.made})
		e.word.Reset()
	}
	return sp
}

// samples reads speech: µ-law at 8 kHz, else 16-bit little-endian PCM.
func samples(b []byte, rate int) []int16 {
	if rate != telephone {
		return samples16(b)
	}
	pcm := make([]int16, len(b))
	codec.PCMU{}.Decode(pcm, b)
	return pcm
}

// words turns timed characters into timed words. Times count from the beginning
// of the utterance, or of the message: the latter where they begin before the
// speech that was already made.
func (e *elevenSpeaking) words(chars []string, starts []int) []pipeline.Word {
	var base time.Duration
	const slack = 50 * time.Millisecond
	if len(starts) > 0 && time.Duration(starts[0])*time.Millisecond+slack < e.made {
		base = e.made
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
