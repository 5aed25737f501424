package tts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	suspicious    = time.Second // of silence where something is due
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
	u := c.join(s)
	if u == nil {
		conn, err := wire.Open(ctx, "cartesia", cmp.Or(c.URL, CartesiaURL), nil,
			http.Header{"X-Api-Key": {string(c.Key)}, "Cartesia-Version": {CartesiaVersion}}, c.Dial)
		if err != nil {
			return nil, err
		}
		if u, err = c.add(newLine(newSocket("cartesia", conn)), s); err != nil {
			return nil, err
		}
	}
	u.unhook = context.AfterFunc(ctx, u.end)
	return u, nil
}

// join begins an utterance on a socket that is open, if one is.
func (c *Cartesia) join(s pipeline.Style) *cartesiaSpeaking {
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
			return u
		}
	}
	return nil
}

// add takes a new socket in and begins an utterance on it.
func (c *Cartesia) add(l *line, s pipeline.Style) (*cartesiaSpeaking, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		l.close()
		return nil, errors.New("cartesia: closed")
	}
	u := l.begin(c.name(), s)
	if u == nil {
		return nil, errors.New("cartesia: the connection ended at once")
	}
	c.lines = append(c.lines, l)
	return u, nil
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
