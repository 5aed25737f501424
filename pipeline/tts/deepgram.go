package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Defaults of Deepgram.
const (
	DeepgramURL   = "wss://api.deepgram.com/v1/speak"
	DeepgramVoice = "aura-2-thalia-en"
)

// deepgramVoices lists the default voice of each language. The language is the end of the
// voice's name (developers.deepgram.com/docs/tts-models).
var deepgramVoices = []string{ //nolint:gochecknoglobals // a table
	DeepgramVoice, "aura-2-celeste-es", "aura-2-viktoria-de", "aura-2-agathe-fr", "aura-2-livia-it", "aura-2-rhea-nl", "aura-2-izanami-ja",
}

const (
	// flushAfter is the amount of text between the first and the second Flush message. It doubles with
	// each further Flush, up to maxFlushText. A connection allows maxFlushes per flushWindow and then
	// stops speaking (developers.deepgram.com/docs/tts-ws-flush).
	flushAfter   = 120  // bytes
	maxFlushText = 1000 // bytes
	maxFlushes   = 20
	flushWindow  = time.Minute
	// spareFlushes is the number of flushes that must be left for the connection to be reused.
	spareFlushes = 6
)

// Deepgram uses the streaming text-to-speech API
// (developers.deepgram.com/docs/tts-websocket). It reports no word times.
type Deepgram struct {
	URL  string // empty means DeepgramURL
	Key  media.Secret
	Dial wsdial.DialFunc
	Warm *Pool // pool of open connections; nil opens one for each utterance
}

// OptionRules implements pipeline.RuledProvider. Only English and Spanish voices have a speed.
func (Deepgram) OptionRules() pipeline.OptionRules {
	r := pipeline.OptionRules{
		Takes:    []string{"speed", "options"},
		Reserved: []string{"model", "encoding", "sample_rate", "container", "bit_rate", "speed"},
		Known:    []string{"mip_opt_out", "tag"},
	}
	for _, v := range deepgramVoices {
		r.Languages = append(r.Languages, deepgramLanguage(v))
	}
	return r
}

// deepgramLanguage returns the language of a voice.
func deepgramLanguage(voice string) string { return voice[strings.LastIndex(voice, "-")+1:] }

// deepgramVoice returns the voice of a style. It refuses a voice of another language, with one
// exception: it accepts a Spanish voice for English, because such a voice speaks both.
func deepgramVoice(s pipeline.Style) (string, error) {
	voice, language := cmp.Or(s.Voice, s.Model), baseLanguage(s.Language)
	var spoken []string
	for _, v := range deepgramVoices {
		if voice == "" && (language == "" || deepgramLanguage(v) == language) {
			return v, nil
		}
		spoken = append(spoken, deepgramLanguage(v))
	}
	of := deepgramLanguage(voice)
	switch {
	case voice == "":
		return "", checkLanguage("deepgram speech", "the provider", s.Language, spoken)
	case !slices.Contains(spoken, of), of == "es" && language == "en": // the voice is a custom one, or one that switches languages
		return voice, nil
	}
	return voice, checkLanguage("deepgram speech", "voice "+voice, s.Language, []string{of})
}

// onDeepgramClose implements peer.onClose. A close with "NET-" in the reason is no refusal
// (developers.deepgram.com/docs/tts-troubleshooting-websocket-net-and-data-errors).
func onDeepgramClose(code int, reason string) (int, string) {
	switch code {
	case websocket.CloseUnsupportedData, websocket.ClosePolicyViolation, websocket.CloseMessageTooBig:
		if strings.Contains(reason, "NET-") {
			return 0, ""
		}
		return http.StatusBadRequest, reason
	}
	return 0, ""
}

// Open implements pipeline.Voice. At Deepgram a model is a voice, so the style may name it in Voice
// or, if Voice is empty, in Model. A style without either gets a default voice of its language.
func (d Deepgram) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	voice, err := deepgramVoice(s)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	for name, v := range s.Options.Extra {
		q.Set(name, fmt.Sprint(v))
	}
	q.Set("model", voice)
	q.Set("encoding", "mulaw")
	q.Set("sample_rate", strconv.Itoa(s.Rate))
	if s.Rate != telephone {
		q.Set("encoding", "linear16")
	}
	if speed := within(s.Options.Speed, 0.7, 1.5); speed != 0 && slices.Contains([]string{"en", "es"}, deepgramLanguage(voice)) {
		q.Set("speed", fmt.Sprint(speed))
	}
	base := cmp.Or(d.URL, DeepgramURL)
	address := base + "?" + q.Encode()
	remote := peer{
		name: "deepgram speech", header: http.Header{"Authorization": {"Token " + string(d.Key)}}, dial: d.Dial, onClose: onDeepgramClose,
	}
	sock, err := d.Warm.get(ctx, address, func(ctx context.Context) (*socket, error) { return remote.open(ctx, base, q) })
	if err != nil {
		return nil, err
	}
	sp := &deepgramSynthesis{socket: sock, rate: s.Rate, warm: d.Warm, address: address, flushed: make(chan struct{}, 1)}
	sp.unhook = context.AfterFunc(ctx, sock.close)
	return sp, nil
}

// deepgramSynthesis is one utterance. Close returns the connection to the pool if the whole text
// was spoken, and otherwise closes the connection.
type deepgramSynthesis struct {
	*socket
	rate    int
	warm    *Pool
	address string
	unhook  func() bool
	over    sync.Once
	flushed chan struct{} // signals that the text is complete

	split   Splitter // only the writing goroutine uses it
	pending string   // text since the last Flush; only the writing goroutine uses it
	flushAt int      // bytes of pending that trigger a Flush; 0 for the first clause; only the writing goroutine uses it

	mu       sync.Mutex
	open     []string // flushed texts that are not fully spoken
	complete bool     // the text is complete

	// duration is the length of the speech so far. from is the start of the oldest open text within
	// the speech. Only the reading goroutine uses them.
	duration, from time.Duration
	odd            []byte // first byte of a sample that is split between messages
}

// Write implements pipeline.Synthesis.
func (d *deepgramSynthesis) Write(text string) error {
	for _, clause := range d.split.Add(text) {
		if err := d.speak(clause + " "); err != nil {
			return err
		}
	}
	return nil
}

func (d *deepgramSynthesis) speak(text string) error {
	if err := d.send(map[string]string{"type": "Speak", "text": text}); err != nil {
		return err
	}
	// the last allowed flush is kept for the end of the text
	if d.pending += text; len(d.pending) < d.flushAt || d.recentFlushes(time.Now()) >= maxFlushes-1 {
		return nil
	}
	d.flushAt = min(max(2*d.flushAt, flushAfter), maxFlushText)
	return d.flush()
}

func (d *deepgramSynthesis) flush() error {
	d.flushes = append(d.flushes, time.Now())
	d.mu.Lock()
	d.open = append(d.open, d.pending)
	d.mu.Unlock()
	d.pending = ""
	return d.send(map[string]string{"type": "Flush"})
}

// Flush implements pipeline.Synthesis.
func (d *deepgramSynthesis) Flush() error {
	if rest := d.split.End(); rest != "" {
		d.pending += rest
		if err := d.send(map[string]string{"type": "Speak", "text": rest}); err != nil {
			return err
		}
	}
	var err error
	if d.pending != "" {
		err = d.flush()
	}
	d.mu.Lock()
	d.complete = true
	d.mu.Unlock()
	d.flushed <- struct{}{}
	return err
}

// done reports whether the whole text was spoken.
func (d *deepgramSynthesis) done() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.complete && len(d.open) == 0
}

// Audio implements pipeline.Synthesis.
func (d *deepgramSynthesis) Audio() iter.Seq2[pipeline.Speech, error] {
	return d.speech(d.flushed, d.done, d.onMessage)
}

// onMessage reads one message: speech, or the end of a flushed text. Deepgram reports no word
// times, so the words of that text are timed by their length.
func (d *deepgramSynthesis) onMessage(r message) (pipeline.Speech, error) {
	if r.kind == websocket.BinaryMessage {
		b := r.body
		if d.rate != telephone {
			b = append(d.odd, b...)
			d.odd = append([]byte(nil), b[len(b)&^1:]...)
		}
		sp := pipeline.Speech{PCM: samples(b, d.rate)}
		d.duration += time.Duration(len(sp.PCM)) * time.Second / time.Duration(d.rate)
		return sp, nil
	}
	m, err := parseDeepgram(r.body)
	if err != nil {
		return pipeline.Speech{}, fmt.Errorf("%s: %w", d.name, err)
	}
	if m.Type == "Error" {
		return pipeline.Speech{}, d.refused(statusOf(m.Code+m.ErrCode), cmp.Or(m.Description, m.ErrMsg))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case len(d.open) == 0:
		return pipeline.Speech{}, nil
	case m.Type == "Warning": // the provider will not speak the open text
		return pipeline.Speech{}, fmt.Errorf("%s: warning: %s", d.name, pipeline.Redact(m.Description, d.header, nil))
	case m.Type != "Flushed": // Metadata, Cleared and unknown types need no action
		return pipeline.Speech{}, nil
	}
	sp := pipeline.Speech{Words: spreadWords(d.open[0], d.from, d.duration-d.from)}
	d.open, d.from = d.open[1:], d.duration
	return sp, nil
}

// deepgramMessage holds the fields of a text message that this client uses.
type deepgramMessage struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Code        string `json:"code"`
	ErrMsg      string `json:"err_msg"`
	ErrCode     string `json:"err_code"`
}

func parseDeepgram(b []byte) (deepgramMessage, error) {
	var m deepgramMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("not JSON: %w", err)
	}
	return m, nil
}

// Close implements pipeline.Synthesis. It closes a connection with unspoken text or with too few
// flushes left. While Audio runs, it may be called only to cancel the utterance.
func (d *deepgramSynthesis) Close() error {
	d.over.Do(func() {
		if d.unhook() && d.done() && !d.closed() && d.recentFlushes(time.Now()) <= maxFlushes-spareFlushes {
			d.warm.put(d.address, d.socket)
			return
		}
		d.close()
	})
	return nil
}
