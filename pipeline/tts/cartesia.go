package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wire"
)

// Cartesia's defaults.
const (
	CartesiaURL     = "wss://api.cartesia.ai/tts/websocket"
	CartesiaModel   = "sonic-2"
	CartesiaVoice   = "a0e99841-438c-4a64-b679-ae501e7d6091"
	CartesiaVersion = "2025-04-16"
)

const (
	mostContexts  = 32      // utterances that share a socket
	mostUnheard   = 8 << 20 // bytes of an utterance that may wait: minutes of speech
	cartesiaCheck = 20 * time.Second
)

// Cartesia speaks by the streaming text-to-speech of Cartesia
// (docs.cartesia.ai/api-reference/tts/websocket). Utterances share sockets, which
// stay open until Close.
type Cartesia struct {
	URL  string // empty: CartesiaURL
	Key  media.Secret
	Dial wire.Dial

	mu     sync.Mutex
	lines  []*line
	next   int // number of the next utterance
	closed bool
}

// Open implements pipeline.Voice.
func (c *Cartesia) Open(ctx context.Context, s pipeline.Style) (pipeline.Speaking, error) {
	l, u := c.join(s)
	if u == nil {
		conn, err := wire.Open(ctx, "cartesia", cmp.Or(c.URL, CartesiaURL), nil,
			http.Header{"X-Api-Key": {string(c.Key)}, "Cartesia-Version": {CartesiaVersion}}, c.Dial)
		if err != nil {
			return nil, err
		}
		if l, u, err = c.add(newLine(newSocket("cartesia", conn)), s); err != nil {
			return nil, err
		}
	}
	u.line = l
	u.unhook = context.AfterFunc(ctx, u.end)
	return u, nil
}

// join begins an utterance on a socket that is open, if one is.
func (c *Cartesia) join(s pipeline.Style) (*line, *cartesiaSpeaking) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.lines[:0]
	for _, l := range c.lines {
		if !l.ended() {
			open = append(open, l)
		}
	}
	c.lines = open
	for _, l := range c.lines {
		if u := l.begin(c.name(), s); u != nil {
			return l, u
		}
	}
	return nil, nil
}

// add takes a new socket in and begins an utterance on it.
func (c *Cartesia) add(l *line, s pipeline.Style) (*line, *cartesiaSpeaking, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		l.close()
		return nil, nil, errors.New("cartesia: closed")
	}
	u := l.begin(c.name(), s)
	if u == nil {
		return nil, nil, errors.New("cartesia: the connection ended at once")
	}
	c.lines = append(c.lines, l)
	return l, u, nil
}

func (c *Cartesia) name() string {
	c.next++
	return fmt.Sprintf("u%d", c.next)
}

// Close ends all sockets and what is spoken on them.
func (c *Cartesia) Close() error {
	c.mu.Lock()
	c.closed = true
	lines := c.lines
	c.lines = nil
	c.mu.Unlock()
	for _, l := range lines {
		l.close()
		<-l.over
	}
	return nil
}

// A line is a socket that utterances share. Its goroutine hands out what comes;
// it ends with the socket.
type line struct {
	*socket
	over chan struct{} // the goroutine ended

	mu       sync.Mutex
	speaking map[string]*cartesiaSpeaking
	dead     bool
}

func newLine(s *socket) *line {
	l := &line{socket: s, over: make(chan struct{}), speaking: map[string]*cartesiaSpeaking{}}
	go l.run()
	return l
}

func (l *line) begin(id string, s pipeline.Style) *cartesiaSpeaking {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || len(l.speaking) >= mostContexts {
		return nil
	}
	u := &cartesiaSpeaking{id: id, style: s, wake: make(chan struct{}, 1)}
	l.speaking[id] = u
	return u
}

func (l *line) leave(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.speaking, id)
}

// run hands what comes to whom it is for. It waits for nobody: what is not yet
// heard of an utterance is kept, up to mostUnheard.
func (l *line) run() {
	defer close(l.over)
	tick := time.NewTicker(cartesiaCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !l.ping() {
				_ = l.conn.Close() // ends what comes in, too
			}
		case r, ok := <-l.in:
			if !ok {
				l.fail(l.err)
				return
			}
			m, err := parseCartesia(r.body)
			if err != nil {
				l.fail(fmt.Errorf("cartesia: %w", err))
				l.close()
				return
			}
			l.mu.Lock()
			u := l.speaking[m.Context]
			l.mu.Unlock()
			if u != nil {
				u.take(m) // nobody else's: it was cancelled
			}
		}
	}
}

// fail ends the line and all that is spoken on it.
func (l *line) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, u := range l.speaking {
		u.fail(err)
	}
}

// cartesiaMessage is what Cartesia sends, as far as it matters here. The words'
// times are in seconds from the beginning of the context.
type cartesiaMessage struct {
	Type    string `json:"type"`
	Context string `json:"context_id"`
	Data    []byte `json:"data"` // base64
	Done    bool   `json:"done"`
	Error   string `json:"error"`
	Status  int    `json:"status_code"` // as of HTTP
	Title   string `json:"title"`
	Message string `json:"message"`
	Words   struct {
		Words []string  `json:"words"`
		Start []float64 `json:"start"`
		End   []float64 `json:"end"`
	} `json:"word_timestamps"`
}

// refusal is the error that a message tells.
func (m cartesiaMessage) refusal() error {
	text := pipeline.Clean(strings.TrimSpace(cmp.Or(m.Error, m.Title+" "+m.Message)))
	if m.Status >= 400 {
		return fmt.Errorf("cartesia: %w", &pipeline.RefusedError{Status: m.Status, Text: text})
	}
	return fmt.Errorf("cartesia: %s", text)
}

func parseCartesia(b []byte) (cartesiaMessage, error) {
	var m cartesiaMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("not JSON: %w", err)
	}
	if n := len(m.Words.Words); len(m.Words.Start) != n || len(m.Words.End) != n {
		m.Words.Words = nil // times without words, or the other way about
	}
	return m, nil
}

// cartesiaSpeaking is one utterance, a context of Cartesia's.
type cartesiaSpeaking struct {
	id     string
	style  pipeline.Style
	line   *line
	unhook func() bool
	once   sync.Once
	wake   chan struct{} // there is news
	rest   string        // of the text: what may be half a word. The speaker's

	mu     sync.Mutex
	unread []pipeline.Speech
	bytes  int
	done   bool
	closed bool
	err    error
}

// Say implements pipeline.Speaking. Whole words are sent, each with the space
// behind it: Cartesia joins pieces as they are.
func (u *cartesiaSpeaking) Say(text string) error {
	whole, rest := wholeWords(u.rest + text)
	if u.rest = rest; strings.TrimSpace(whole) == "" {
		return nil
	}
	return u.send(whole, true)
}

// Flush implements pipeline.Speaking.
func (u *cartesiaSpeaking) Flush() error {
	rest := u.rest
	u.rest = ""
	return u.send(rest, false)
}

func (u *cartesiaSpeaking) send(text string, more bool) error {
	encoding := "pcm_mulaw"
	if u.style.Rate != telephone {
		encoding = "pcm_s16le"
	}
	type object = map[string]any
	m := object{
		"model_id": cmp.Or(u.style.Model, CartesiaModel), "transcript": text, "context_id": u.id,
		"voice":         object{"mode": "id", "id": cmp.Or(u.style.Voice, CartesiaVoice)},
		"output_format": object{"container": "raw", "encoding": encoding, "sample_rate": u.style.Rate},
		"continue":      more, "add_timestamps": true, "max_buffer_delay_ms": 0,
	}
	if lang, _, _ := strings.Cut(u.style.Language, "-"); lang != "" {
		m["language"] = lang
	}
	u.mu.Lock()
	closed, err := u.closed, u.err
	u.mu.Unlock()
	if closed || err != nil {
		return cmp.Or(err, context.Canceled)
	}
	return u.line.send(m)
}

// take notes what came of the utterance.
func (u *cartesiaSpeaking) take(m cartesiaMessage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch m.Type {
	case "error":
		u.err = m.refusal()
	case "done":
		u.done = true
	default:
		sp := pipeline.Speech{PCM: samples(m.Data, u.style.Rate)}
		for i, w := range m.Words.Words {
			sp.Words = append(sp.Words, pipeline.Word{Text: w, Start: seconds(m.Words.Start[i]), End: seconds(m.Words.End[i])})
		}
		u.unread = append(u.unread, sp)
		if u.bytes += len(m.Data); u.bytes > mostUnheard {
			u.err = errors.New("cartesia: speech comes much faster than it is heard")
		}
	}
	u.news()
}

// news wakes the listener, who looks at all there is: one sign is enough.
func (u *cartesiaSpeaking) news() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *cartesiaSpeaking) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
	}
	u.news()
}

// Audio implements pipeline.Speaking.
func (u *cartesiaSpeaking) Audio() iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for {
			u.mu.Lock()
			unread, done, closed, err := u.unread, u.done, u.closed, u.err
			u.unread, u.bytes = nil, 0
			u.mu.Unlock()
			if closed {
				return
			}
			for _, sp := range unread {
				if (len(sp.PCM) > 0 || len(sp.Words) > 0) && !yield(sp, nil) {
					return
				}
			}
			switch {
			case done:
				return
			case err != nil:
				yield(pipeline.Speech{}, err)
				return
			case len(unread) == 0:
				<-u.wake
			}
		}
	}
}

// Close implements pipeline.Speaking.
func (u *cartesiaSpeaking) Close() error {
	u.unhook()
	u.end()
	return nil
}

// end leaves the socket to the others. What is not yet spoken is cancelled.
func (u *cartesiaSpeaking) end() {
	u.once.Do(func() {
		u.line.leave(u.id)
		u.mu.Lock()
		u.closed = true
		cancel := !u.done && u.err == nil
		u.news()
		u.mu.Unlock()
		if cancel && u.line.send(map[string]any{"context_id": u.id, "cancel": true}) != nil {
			u.line.close()
		}
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
