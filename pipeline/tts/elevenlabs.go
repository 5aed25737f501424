package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/pipeline"
)

// ElevenLabs' defaults.
const (
	ElevenLabsURL   = "wss://api.elevenlabs.io"
	ElevenLabsModel = "eleven_flash_v2_5"
	ElevenLabsVoice = "21m00Tcm4TlvDq8ikWAM"
)

const writeLimit = 5 * time.Second

// ElevenLabs speaks by the streaming text-to-speech API
// (elevenlabs.io/docs/api-reference/text-to-speech/v-1-text-to-speech-voice-id-stream-input).
type ElevenLabs struct {
	URL string // scheme and host; empty: ElevenLabsURL
	Key media.Secret
	// Dial opens the connection; nil: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Open implements pipeline.Voice.
func (e ElevenLabs) Open(ctx context.Context, s pipeline.Style) (pipeline.Speaking, error) {
	format, err := elevenLabsFormat(s.Rate)
	if err != nil {
		return nil, err
	}
	q := url.Values{
		"model_id": {cmp.Or(s.Model, ElevenLabsModel)}, "output_format": {format},
		"auto_mode": {"true"}, "sync_alignment": {"true"}, "inactivity_timeout": {"60"},
	}
	u := strings.TrimSuffix(cmp.Or(e.URL, ElevenLabsURL), "/") +
		"/v1/text-to-speech/" + url.PathEscape(cmp.Or(s.Voice, ElevenLabsVoice)) + "/stream-input?" + q.Encode()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: e.Dial}
	conn, resp, err := dialer.DialContext(ctx, u, http.Header{"Xi-Api-Key": {string(e.Key)}})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // what is left of a handshake
	}
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("elevenlabs: %s", resp.Status)
		}
		return nil, fmt.Errorf("elevenlabs: %w", err)
	}
	sp := &elevenSpeaking{conn: conn, rate: s.Rate, done: make(chan struct{})}
	sp.unhook = context.AfterFunc(ctx, sp.end)
	if err := sp.send(map[string]any{"text": " ", "generation_config": map[string]any{"chunk_length_schedule": []int{50}}}); err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	return sp, nil
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

// elevenSpeaking is one utterance on a connection of its own.
type elevenSpeaking struct {
	conn   *websocket.Conn
	rate   int
	unhook func() bool
	done   chan struct{}
	once   sync.Once

	rest string        // of the text: what may be half a word. The speaker's
	made time.Duration // of speech so far. The listener's
	word strings.Builder
	from time.Duration // where word begins
}

// Say implements pipeline.Speaking. Whole words are sent, each with the space
// behind it, as the API asks.
func (e *elevenSpeaking) Say(text string) error {
	e.rest += text
	cut := strings.LastIndexAny(e.rest, " \n\t") + 1
	if cut == 0 {
		return nil
	}
	whole := e.rest[:cut]
	e.rest = e.rest[cut:]
	return e.send(map[string]any{"text": whole})
}

// Flush implements pipeline.Speaking.
func (e *elevenSpeaking) Flush() error {
	if e.rest != "" {
		if err := e.send(map[string]any{"text": e.rest + " ", "flush": true}); err != nil {
			return err
		}
		e.rest = ""
	}
	return e.send(map[string]any{"text": ""})
}

func (e *elevenSpeaking) send(m map[string]any) error {
	err := e.conn.SetWriteDeadline(time.Now().Add(writeLimit))
	if err == nil {
		err = e.conn.WriteJSON(m)
	}
	if err != nil {
		return fmt.Errorf("elevenlabs: send: %w", err)
	}
	return nil
}

// Close implements pipeline.Speaking.
func (e *elevenSpeaking) Close() error {
	e.unhook()
	e.end()
	return nil
}

// end cuts the connection: the utterance is over, heard or not.
func (e *elevenSpeaking) end() {
	e.once.Do(func() {
		close(e.done)
		_ = e.conn.Close() // wakes who reads it
	})
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
		for {
			_, b, err := e.conn.ReadMessage()
			if err != nil {
				if !e.closed() {
					yield(pipeline.Speech{}, fmt.Errorf("elevenlabs: receive: %w", err))
				}
				return
			}
			var m elevenMessage
			if err := json.Unmarshal(b, &m); err != nil {
				yield(pipeline.Speech{}, fmt.Errorf("elevenlabs: not JSON: %w", err))
				return
			}
			if m.Error != "" {
				yield(pipeline.Speech{}, fmt.Errorf("elevenlabs: %s: %s", m.Error, m.Message))
				return
			}
			sp := e.speech(m)
			if (len(sp.PCM) > 0 || len(sp.Words) > 0) && !yield(sp, nil) || m.IsFinal {
				return
			}
		}
	}
}

func (e *elevenSpeaking) closed() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

func (e *elevenSpeaking) speech(m elevenMessage) pipeline.Speech {
	var sp pipeline.Speech
	if e.rate == telephone {
		sp.PCM = make([]int16, len(m.Audio))
		codec.PCMU{}.Decode(sp.PCM, m.Audio)
	} else {
		sp.PCM = samples16(m.Audio)
	}
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

const telephone = 8000 // Hz; at this rate speech comes as µ-law

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
