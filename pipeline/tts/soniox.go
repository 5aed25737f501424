package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Defaults of Soniox.
const (
	SonioxURL   = "wss://tts-rt.soniox.com/tts-websocket"
	SonioxModel = "tts-rt-v2"
	SonioxVoice = "Emma"
)

const (
	// sonioxIdle is the time without text after which the client completes a stream. Later text gets
	// a new stream. Soniox itself ends a stream without text with error 408, after 8 to 18 s as
	// observed (github.com/livekit/agents/issues/6225).
	sonioxIdle = 4 * time.Second
	// sonioxAge is the age of a stream after which text gets a new stream. Soniox ends each stream after 2 min.
	sonioxAge = 90 * time.Second
)

// Soniox uses the real-time text-to-speech API (soniox.com/docs/api-reference/tts/websocket-api;
// soniox.com/docs/tts/rt/ describes streams, word times and the end of a stream). A connection serves one utterance
// at a time and is reused. Each stream carries its own settings, so all voices share the connections.
type Soniox struct {
	URL  string // empty means SonioxURL; regions have hosts such as tts-rt.eu.soniox.com
	Key  media.Secret
	Dial wsdial.DialFunc
	Warm *Pool // pool of open connections; nil opens one for each utterance
}

// sonioxLanguages lists the languages that every voice speaks
// (soniox.com/docs/tts/concepts/languages).
const sonioxLanguages = "af ar az be bg bn bs ca cs cy da de el en es et eu fa fi fr gl gu he hi hr hu id is it ja kk kn ko lt lv " +
	"mk ml mr ms nl no pa pl pt ro ru sk sl sq sr su sv sw ta te th tl tr uk ur uz vi zh"

// OptionRules implements pipeline.RuledProvider.
func (Soniox) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"speed", "options"},
		Reserved: []string{
			"api_key", "stream_id", "model", "language", "voice", "audio_format", "sample_rate", "bitrate", "return_timestamps", "speed",
			"text", "text_end", "cancel",
		},
		Known:     []string{"reduce_silence"},
		Languages: strings.Fields(sonioxLanguages),
	}
}

// Open implements pipeline.Voice. English is the default language.
func (x Soniox) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	language := sonioxLanguage(s.Language)
	if err := checkLanguage("soniox speech", "the provider", language, strings.Fields(sonioxLanguages)); err != nil {
		return nil, err
	}
	config, err := x.config(s, language)
	if err != nil {
		return nil, err
	}
	address := cmp.Or(x.URL, SonioxURL)
	p := peer{name: "soniox speech", secret: x.Key, dial: x.Dial, keepAlive: map[string]bool{"keep_alive": true}}
	sock, err := x.Warm.get(ctx, address, func(ctx context.Context) (*socket, error) { return p.open(ctx, address, nil) })
	if err != nil {
		return nil, err
	}
	sp := &sonioxSynthesis{socket: sock, rate: s.Rate, config: config, warm: x.Warm, address: address, changed: make(chan struct{}, 1)}
	sp.idle = time.AfterFunc(sonioxIdle, sp.onIdle)
	sp.unhook = context.AfterFunc(ctx, sock.close)
	return sp, nil
}

// config returns the settings that start each stream of an utterance.
func (x Soniox) config(s pipeline.Style, language string) (map[string]any, error) {
	own := map[string]any{
		"api_key": string(x.Key), "model": cmp.Or(s.Model, SonioxModel), "voice": cmp.Or(s.Voice, SonioxVoice),
		"language": cmp.Or(language, "en"), "sample_rate": s.Rate, "return_timestamps": true,
	}
	switch s.Rate {
	case telephone:
		own["audio_format"] = "pcm_mulaw"
	case 16000, 24000, 44100, 48000:
		own["audio_format"] = "pcm_s16le"
	default:
		return nil, fmt.Errorf("soniox speech: no output format of %d Hz; accepted: 8000, 16000, 24000, 44100, 48000", s.Rate)
	}
	if speed := within(s.Options.Speed, 0.7, 1.3); speed != 0 {
		own["speed"] = speed
	}
	return withExtra(s.Options, own), nil
}

// sonioxLanguage returns Soniox's code for the language of a BCP 47 tag.
func sonioxLanguage(tag string) string {
	switch base := baseLanguage(tag); base {
	case "nb", "nn":
		return "no"
	case "fil":
		return "tl"
	default:
		return base
	}
}

// sonioxSynthesis is one utterance. It uses one stream after another: a long pause of the text or
// the stream's age ends a stream.
type sonioxSynthesis struct {
	*socket
	rate    int
	config  map[string]any
	warm    *Pool
	address string
	unhook  func() bool
	idle    *time.Timer
	over    sync.Once
	changed chan struct{} // Flush sends a signal, so that Audio checks for the end

	split Splitter // only the writing goroutine uses it

	mu       sync.Mutex
	streams  int       // number of streams begun so far, also the name of the last one
	active   bool      // Soniox has not ended the last stream
	open     bool      // the last stream still accepts text
	began    time.Time // when the last stream began
	pending  string    // text for the next stream
	complete bool      // no text follows
	ended    bool      // the whole text was spoken

	// Only the reading goroutine uses these fields.
	base, duration time.Duration // start of the last stream, and length of the speech so far
	words          charWords
	odd            []byte // first byte of a sample that is split between messages
}

// Write implements pipeline.Synthesis.
func (x *sonioxSynthesis) Write(text string) error {
	for _, clause := range x.split.Add(text) {
		if err := x.push(clause + " "); err != nil {
			return err
		}
	}
	return nil
}

func (x *sonioxSynthesis) push(text string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open && time.Since(x.began) > sonioxAge {
		if err := x.finish(); err != nil {
			return err
		}
	}
	if x.active && !x.open {
		x.pending += text
		return nil
	}
	return x.say(text)
}

// say sends text to the open stream, or begins a new stream if none is active. The caller holds mu.
func (x *sonioxSynthesis) say(text string) error {
	if !x.active {
		x.streams++
		x.active, x.open, x.began = true, true, time.Now()
		if err := x.send(withExtra(pipeline.Options{Extra: x.config}, map[string]any{"stream_id": x.id()})); err != nil {
			return err
		}
	}
	x.idle.Reset(sonioxIdle)
	return x.send(map[string]any{"stream_id": x.id(), "text": text, "text_end": false})
}

// finish tells Soniox that the text of the open stream is complete. The caller holds mu.
func (x *sonioxSynthesis) finish() error {
	x.open = false
	return x.send(map[string]any{"stream_id": x.id(), "text": "", "text_end": true})
}

// id returns the name of the last stream. The caller holds mu.
func (x *sonioxSynthesis) id() string { return strconv.Itoa(x.streams) }

func (x *sonioxSynthesis) onIdle() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open && !x.closed() {
		_ = x.finish() // if the connection is broken, the reader sees it
	}
}

// Flush implements pipeline.Synthesis.
func (x *sonioxSynthesis) Flush() error {
	if rest := x.split.End(); rest != "" {
		if err := x.push(rest); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.complete = true
	x.ended = !x.active && x.pending == ""
	x.changed <- struct{}{}
	if x.open {
		return x.finish()
	}
	return nil
}

func (x *sonioxSynthesis) done() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ended
}

// Audio implements pipeline.Synthesis.
func (x *sonioxSynthesis) Audio() iter.Seq2[pipeline.Speech, error] {
	return x.speech(x.changed, x.done, x.onMessage)
}

// sonioxMessage is a message of the API. Times are in seconds from the start of the stream.
type sonioxMessage struct {
	Stream     string `json:"stream_id"`
	Audio      []byte `json:"audio"` // audio in base64
	Terminated bool   `json:"terminated"`
	Code       int    `json:"error_code"` // HTTP status
	Message    string `json:"error_message"`
	Timestamps struct {
		Chars  []string  `json:"characters"`
		Starts []float64 `json:"character_start_times_seconds"`
	} `json:"timestamps"`
}

func (x *sonioxSynthesis) onMessage(r message) (pipeline.Speech, error) {
	var m sonioxMessage
	var sp pipeline.Speech
	if err := json.Unmarshal(r.body, &m); err != nil {
		return sp, fmt.Errorf("%s: not JSON: %w", x.name, err)
	}
	x.mu.Lock()
	current := x.active && m.Stream == x.id()
	x.mu.Unlock()
	switch {
	case m.Code != 0 && (current || m.Stream == ""):
		if m.Code < 400 || m.Code > 599 {
			m.Code = 0
		}
		return sp, x.refused(m.Code, m.Message)
	case !current: // the message belongs to an earlier stream of the connection
		return sp, nil
	}
	b := m.Audio
	if x.rate != telephone {
		b = append(x.odd, b...)
		x.odd = append([]byte(nil), b[len(b)&^1:]...)
	}
	sp.PCM = samples(b, x.rate)
	x.duration += time.Duration(len(sp.PCM)) * time.Second / time.Duration(x.rate)
	if t := m.Timestamps; len(t.Starts) == len(t.Chars) {
		for i, c := range t.Chars {
			sp.Words = x.words.add(sp.Words, c, x.base+seconds(t.Starts[i]))
		}
	}
	if !m.Terminated {
		return sp, nil
	}
	sp.Words = x.words.end(sp.Words, x.duration)
	x.base, x.odd = x.duration, nil
	return sp, x.next()
}

// next handles the end of a stream. It sends the pending text to a new stream.
func (x *sonioxSynthesis) next() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.active, x.open = false, false
	if x.pending == "" {
		x.ended = x.complete
		return nil
	}
	text := x.pending
	x.pending = ""
	if err := x.say(text); err != nil || !x.complete {
		return err
	}
	return x.finish()
}

// Close implements pipeline.Synthesis. It closes a connection with unspoken text.
// While Audio runs, it may be called only to cancel the utterance.
func (x *sonioxSynthesis) Close() error {
	x.over.Do(func() {
		x.idle.Stop()
		if x.unhook() && x.done() && !x.closed() {
			x.warm.put(x.address, x.socket)
			return
		}
		x.close()
	})
	return nil
}
