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
	"github.com/parley-voice/parley/pipeline/wsdial"
)

// Defaults of Cartesia.
const (
	CartesiaURL     = "wss://api.cartesia.ai/tts/websocket"
	CartesiaModel   = "sonic-2"
	CartesiaVoice   = "a0e99841-438c-4a64-b679-ae501e7d6091"
	CartesiaVersion = "2025-04-16"
)

const (
	maxContexts   = 32      // utterances per socket
	maxUnread     = 8 << 20 // bytes of an utterance that may wait: minutes of speech
	cartesiaCheck = 20 * time.Second
	maxSilence    = time.Second // silence while speech is due
)

// Cartesia uses the streaming text-to-speech API
// (docs.cartesia.ai/api-reference/tts/websocket). Utterances share sockets, which stay
// open until Close.
type Cartesia struct {
	URL  string // empty means CartesiaURL
	Key  media.Secret
	Dial wsdial.DialFunc

	mu      sync.Mutex
	sockets []*sharedSocket
	next    int // number of the next utterance
	closed  bool
}

// Open implements pipeline.Voice.
func (c *Cartesia) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	u := c.join(s)
	if u == nil {
		header := http.Header{"X-Api-Key": {string(c.Key)}, "Cartesia-Version": {CartesiaVersion}}
		sock, err := peer{name: "cartesia", header: header, dial: c.Dial}.open(ctx, cmp.Or(c.URL, CartesiaURL), nil)
		if err != nil {
			return nil, err
		}
		if u, err = c.add(newSharedSocket(sock), s); err != nil {
			return nil, err
		}
	}
	u.unhook = context.AfterFunc(ctx, u.end)
	return u, nil
}

// join starts an utterance on an open socket, or returns nil.
func (c *Cartesia) join(s pipeline.Style) *cartesiaSynthesis {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.sockets[:0]
	for _, l := range c.sockets {
		if !l.ended() {
			open = append(open, l)
		}
	}
	c.sockets = open
	for _, l := range c.sockets {
		if u := l.add(c.name(), s); u != nil {
			return u
		}
	}
	return nil
}

// add registers a new socket and starts an utterance on it.
func (c *Cartesia) add(l *sharedSocket, s pipeline.Style) (*cartesiaSynthesis, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		l.close()
		return nil, errors.New("cartesia: closed")
	}
	u := l.add(c.name(), s)
	if u == nil {
		return nil, errors.New("cartesia: connection ended immediately")
	}
	c.sockets = append(c.sockets, l)
	return u, nil
}

func (c *Cartesia) name() string {
	c.next++
	return fmt.Sprintf("u%d", c.next)
}

// Close closes all sockets and their utterances.
func (c *Cartesia) Close() error {
	c.mu.Lock()
	c.closed = true
	lines := c.sockets
	c.sockets = nil
	c.mu.Unlock()
	for _, l := range lines {
		l.close()
		<-l.done
	}
	return nil
}

// cartesiaMessage holds the used fields of a message. Word times are in seconds from the
// start of the context.
type cartesiaMessage struct {
	Type    string `json:"type"`
	Context string `json:"context_id"`
	Data    []byte `json:"data"` // base64
	Done    bool   `json:"done"`
	Error   string `json:"error"`
	Status  int    `json:"status_code"` // an HTTP status
	Title   string `json:"title"`
	Message string `json:"message"`
	Words   struct {
		Words []string  `json:"words"`
		Start []float64 `json:"start"`
		End   []float64 `json:"end"`
	} `json:"word_timestamps"`
}

// refusal returns the error in a message.
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
		m.Words.Words = nil // inconsistent word times
	}
	return m, nil
}
