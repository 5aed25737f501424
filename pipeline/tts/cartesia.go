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
	CartesiaModel   = "sonic-3.5"
	CartesiaVoice   = "f786b574-daa5-4673-aa0c-cbe3e8534c02" // the voice Katie, which Cartesia recommends for agents
	CartesiaVersion = "2026-03-01"                           // the first version with structured errors
)

const (
	maxContexts   = 32      // most utterances per socket
	maxUnread     = 8 << 20 // most bytes of an utterance that Audio has not read yet: minutes of speech
	wordSize      = 64      // bytes that a word with its times counts toward maxUnread
	cartesiaCheck = 20 * time.Second
	maxSilence    = time.Second // a socket that sends nothing for this long although speech is due counts as broken
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

// OptionRules implements pipeline.RuledProvider. Models before sonic-3 speak fewer languages
// and have no speed parameter.
func (*Cartesia) OptionRules() pipeline.OptionRules {
	return pipeline.OptionRules{
		Takes: []string{"speed", "options"},
		Reserved: []string{
			"model_id", "transcript", "context_id", "voice", "output_format", "continue", "add_timestamps",
			"use_normalized_timestamps", "language", "speed", "generation_config",
		},
		Known:     []string{"emotion", "volume", "pronunciation_dict_id", "max_buffer_delay_ms"},
		Languages: cartesiaLanguages(CartesiaModel),
	}
}

// cartesiaLanguages returns the languages of a model; nil if they are unknown
// (docs.cartesia.ai/build-with-cartesia/tts-models/api-changes and older-models).
func cartesiaLanguages(model string) []string {
	switch {
	case strings.HasPrefix(model, "sonic-3"), model == "sonic-latest":
		return strings.Fields(`en de es fr ja pt zh hi ko it nl pl ru sv tr tl bg ro ar cs el fi hr ms sk da ta uk hu no vi bn
			th he ka id te gu kn ml mr pa`)
	case strings.HasPrefix(model, "sonic-2"):
		return strings.Fields("en de es fr ja ko pt zh")
	case strings.HasPrefix(model, "sonic-turbo"):
		return strings.Fields("en de es fr ja ko pt zh hi")
	}
	return nil
}

// cartesiaLanguage returns Cartesia's code for the language of a BCP 47 tag.
func cartesiaLanguage(tag string) string {
	switch base := baseLanguage(tag); base {
	case "nb", "nn":
		return "no"
	case "fil":
		return "tl"
	default:
		return base
	}
}

// Open implements pipeline.Voice. Every voice speaks every language of its model.
func (c *Cartesia) Open(ctx context.Context, s pipeline.Style) (pipeline.Synthesis, error) {
	model := cmp.Or(s.Model, CartesiaModel)
	if spoken := cartesiaLanguages(model); spoken != nil {
		if err := checkLanguage("cartesia", "model "+model, cartesiaLanguage(s.Language), spoken); err != nil {
			return nil, err
		}
	}
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

// join starts an utterance on an open socket. It returns nil if there is none with room.
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
	u := l.add(c.name(), s)
	if u == nil {
		return nil, errors.New("cartesia: connection ended immediately")
	}
	if c.closed {
		l.retire()
	} else {
		c.sockets = append(c.sockets, l)
	}
	return u, nil
}

func (c *Cartesia) name() string {
	c.next++
	return fmt.Sprintf("u%d", c.next)
}

// Close closes all idle sockets. A busy socket closes after its last utterance. Each utterance
// opened after Close gets a socket of its own.
func (c *Cartesia) Close() error {
	c.mu.Lock()
	c.closed = true
	lines := c.sockets
	c.sockets = nil
	c.mu.Unlock()
	for _, l := range lines {
		if l.retire() {
			<-l.done
		}
	}
	return nil
}

// cartesiaMessage holds the fields of a message that this client uses. Word times are in seconds
// from the start of the context.
type cartesiaMessage struct {
	Type    string `json:"type"`
	Context string `json:"context_id"`
	Data    []byte `json:"data"` // audio in base64
	Done    bool   `json:"done"`
	Error   string `json:"error"`
	Status  int    `json:"status_code"` // HTTP status
	Code    string `json:"error_code"`
	Title   string `json:"title"`
	Message string `json:"message"`
	Words   struct {
		Words []string  `json:"words"`
		Start []float64 `json:"start"`
		End   []float64 `json:"end"`
	} `json:"word_timestamps"`
}

// refusal returns the error in a message. Its HTTP status is status_code or, without a valid status_code, follows
// from error_code, such as "model_sunsetted" (docs.cartesia.ai/use-the-api/api-errors).
func (m cartesiaMessage) refusal(p peer) error {
	status := m.Status
	if status < 400 || status >= 600 {
		status = statusOf(m.Code)
	}
	return p.refused(status, strings.TrimSpace(cmp.Or(m.Error, m.Title+" "+m.Message)))
}

func parseCartesia(b []byte) (cartesiaMessage, error) {
	var m cartesiaMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("not JSON: %w", err)
	}
	if n := len(m.Words.Words); len(m.Words.Start) != n || len(m.Words.End) != n {
		m.Words.Words = nil // the provider sent inconsistent word times
	}
	return m, nil
}
