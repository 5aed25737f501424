package fakeprovider

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A contextWire builds the messages of a protocol in which several utterances share a socket. Each utterance is a
// context with an ID. A nil message is not sent.
type contextWire interface {
	word(id string, w spokenWord) []object
	flushed(id string) object  // message after a text that is not the last
	ended(id string) object    // message after the last text
	canceled(id string) object // message after a cancellation
	// expired returns a message to send when a context expires, and a message to send if text comes later.
	expired(id string) (now, later object)
}

// contextInput is text for a context.
type contextInput struct {
	text string
	last bool
}

// contexts serves the contexts of one socket, each in its own goroutine.
type contexts struct {
	*ttsSession
	conn *websocket.Conn
	wire contextWire
	life time.Duration // time for which a context accepts text after its last speech; 0 means no limit
	open map[string]chan contextInput
	wg   sync.WaitGroup
	mu   sync.Mutex // serializes writing
	// completed holds the contexts whose last text was spoken. mu guards it.
	completed map[string]bool
}

// serveContexts upgrades a request. It calls onMessage, which reads one message, until onMessage returns false.
func (s *Server) serveContexts(w http.ResponseWriter, r *http.Request, c *contexts, onMessage func(context.Context) bool) {
	v, conn, done := s.voice(w, r)
	if v == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	c.ttsSession, c.conn, c.open, c.completed = v, conn, map[string]chan contextInput{}, map[string]bool{}
	defer c.wg.Wait()
	defer cancel()
	defer done()
	for onMessage(ctx) {
	}
}

func (c *contexts) write(m object) error {
	if m == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.WriteJSON(m)
}

// begin opens a context.
func (c *contexts) begin(ctx context.Context, id string, rate int, encoding string) {
	in := make(chan contextInput, 1024)
	c.open[id] = in
	v := *c.ttsSession
	v.rate, v.encoding = rate, encoding
	v.send = func(w spokenWord) error {
		for _, m := range c.wire.word(id, w) {
			if err := c.write(m); err != nil {
				return err
			}
		}
		return nil
	}
	c.wg.Go(func() { c.speak(ctx, &v, id, in) })
}

// add passes text to a context.
func (c *contexts) add(id string, in contextInput) {
	select {
	case c.open[id] <- in:
	default: // no test sends that much text
	}
}

// cancel ends a context.
func (c *contexts) cancel(id string) {
	if in, ok := c.open[id]; ok {
		close(in)
		delete(c.open, id)
	}
}

// has reports whether a context is open. It first removes completed contexts.
func (c *contexts) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for done := range c.completed {
		delete(c.open, done)
	}
	clear(c.completed)
	return c.open[id] != nil
}

// speak speaks the texts of one context until the context is completed or canceled.
func (c *contexts) speak(ctx context.Context, v *ttsSession, id string, in chan contextInput) {
	expiry := time.NewTimer(time.Hour)
	defer expiry.Stop()
	dead := false
	for {
		select {
		case m, ok := <-in:
			switch {
			case !ok:
				_ = c.write(c.wire.canceled(id))
				return
			case dead:
				_, late := c.wire.expired(id)
				_ = c.write(late)
				continue
			case !v.say(ctx, m.text):
				_ = c.conn.Close() // the fault requires an aborted response
				return
			case v.neverEnds():
			case m.last:
				c.mu.Lock()
				c.completed[id] = true
				c.mu.Unlock()
				_ = c.write(c.wire.ended(id))
				return
			default:
				_ = c.write(c.wire.flushed(id))
			}
			if c.life > 0 {
				expiry.Reset(c.life)
			}
		case <-expiry.C:
			if dead = !v.neverEnds(); dead {
				now, _ := c.wire.expired(id)
				_ = c.write(now)
			}
		case <-ctx.Done():
			return
		}
	}
}

// sendClose sends a close frame, so that the client does not see a broken connection.
func sendClose(conn *websocket.Conn, code int, reason string) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
}
