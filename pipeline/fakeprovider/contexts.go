package fakeprovider

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A contextWire writes the messages of a protocol in which utterances share a socket, each
// as a context. A nil message is not sent.
type contextWire interface {
	word(id string, w spokenWord) []object
	flushed(id string) object  // a text was spoken and more may follow
	ended(id string) object    // the last text was spoken
	canceled(id string) object // the context was canceled
	// expired returns a message for the time at which a context expires, and one for text
	// that comes later.
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
	life time.Duration // time after its last speech during which a context accepts text; 0 for no limit
	open map[string]chan contextInput
	wg   sync.WaitGroup
	mu   sync.Mutex // serializes writing
	// completed are the contexts whose last text was spoken; guarded by mu.
	completed map[string]bool
}

// serveContexts upgrades a request and passes each message to onMessage until it returns
// false.
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
	default: // more than any test sends
	}
}

// cancel ends a context.
func (c *contexts) cancel(id string) {
	if in, ok := c.open[id]; ok {
		close(in)
		delete(c.open, id)
	}
}

// has reports whether a context is open. It forgets those that were completed.
func (c *contexts) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for done := range c.completed {
		delete(c.open, done)
	}
	clear(c.completed)
	return c.open[id] != nil
}

// speak speaks one context until it is done or canceled.
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

// sendClose sends a close frame, so that the client sees no broken connection.
func sendClose(conn *websocket.Conn, code int, reason string) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
}
