package tts

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	writeLimit = 5 * time.Second
	telephone  = 8000 // Hz; at this rate speech comes as µ-law
	inbox      = 64   // messages that may wait to be heard
)

// A received message is one of a provider.
type received struct {
	kind int // of the WebSocket message
	body []byte
}

// A socket is a connection to a voice. Its reader runs from the first, so that
// an idle one is known to be gone before it is needed. Close waits for it.
type socket struct {
	name    string
	conn    *websocket.Conn
	in      chan received // closed when the connection ended
	err     error         // why; there once in is closed
	stop    chan struct{}
	gone    chan struct{} // the reader ended
	once    sync.Once
	born    time.Time
	missed  atomic.Int32 // pings without an answer
	flushes []time.Time  // the newest last; of who speaks on it

	mu sync.Mutex // of writing
}

func newSocket(name string, conn *websocket.Conn) *socket {
	s := &socket{
		name: name, conn: conn, born: time.Now(), in: make(chan received, inbox),
		stop: make(chan struct{}), gone: make(chan struct{}),
	}
	conn.SetPongHandler(func(string) error { s.missed.Store(0); return nil })
	go s.read()
	return s
}

func (s *socket) read() {
	defer close(s.gone)
	defer close(s.in)
	for {
		kind, b, err := s.conn.ReadMessage()
		if err != nil {
			s.err = fmt.Errorf("%s: receive: %w", s.name, err)
			return
		}
		select {
		case s.in <- received{kind, b}: // waits where speech runs far ahead of the ear
		case <-s.stop:
			return
		}
	}
}

// recent is how often the connection was flushed in the last flushWindow.
func (s *socket) recent(now time.Time) int {
	for len(s.flushes) > 0 && now.Sub(s.flushes[0]) >= flushWindow {
		s.flushes = s.flushes[1:]
	}
	return len(s.flushes)
}

// ended tells whether the connection is gone.
func (s *socket) ended() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

func (s *socket) closed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// send sends m as JSON.
func (s *socket) send(m any) error {
	b, err := json.Marshal(m)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err = s.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err == nil {
			err = s.conn.WriteMessage(websocket.TextMessage, b)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: send: %w", s.name, err)
	}
	return nil
}

// ping asks whether anybody is there. It is false where the last one, or the
// one before, had no answer.
func (s *socket) ping() bool {
	return s.missed.Add(1) <= 2 && s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)) == nil
}

// close cuts the connection, which wakes who waits for it, and waits for the
// reader.
func (s *socket) close() {
	s.once.Do(func() {
		close(s.stop)
		_ = s.conn.Close()
	})
	<-s.gone
}

// A Warm keeps connections to voices open for the utterances to come, so that
// the first word waits for no handshake. As many are kept of an address as were
// missing at a time, up to mostReady; each not longer than Idle. Its zero value
// is ready. Close ends it; its voices then connect anew for each utterance.
type Warm struct {
	Idle time.Duration // 0: a minute. Less than the provider's own limit.

	mu     sync.Mutex
	places map[string]*place
	stop   context.CancelFunc
	ctx    func() context.Context // of the dials; nil until the first
	closed bool
	wg     sync.WaitGroup
}

const (
	mostReady  = 16 // connections of an address
	dialLimit  = 5 * time.Second
	checkEvery = 10 * time.Second
)

// A place is what is kept of one address.
type place struct {
	ready  []*socket // the newest last
	coming int       // being opened
	want   int
}

type dialer func(ctx context.Context) (*socket, error)

// get returns a connection: one that is ready, else a new one. Either way
// another is opened for the next.
func (w *Warm) get(ctx context.Context, address string, dial dialer) (*socket, error) {
	if w == nil {
		return dial(ctx)
	}
	s := w.take(address)
	if s == nil {
		var err error
		if s, err = dial(ctx); err != nil {
			return nil, err
		}
	}
	w.refill(address, dial)
	return s, nil
}

// take returns a connection that is ready, if one is.
func (w *Warm) take(address string) *socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.begin()
	p := w.places[address]
	if p == nil {
		p = &place{}
		w.places[address] = p
	}
	var s *socket
	for n := len(p.ready); n > 0 && s == nil; n = len(p.ready) {
		if s, p.ready = p.ready[n-1], p.ready[:n-1]; s.ended() || time.Since(s.born) > w.idle() {
			w.wg.Go(s.close)
			s = nil
		}
	}
	if s == nil {
		p.want = min(p.want+1, mostReady)
	}
	return s
}

// refill opens what is missing of an address.
func (w *Warm) refill(address string, dial dialer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.places[address]
	if w.closed || p == nil {
		return
	}
	for ; len(p.ready)+p.coming < p.want; p.coming++ {
		ctx := w.ctx()
		w.wg.Go(func() { w.fill(ctx, p, dial) })
	}
}

// begin starts the checks, once.
func (w *Warm) begin() {
	if w.places != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.places, w.stop, w.ctx = map[string]*place{}, cancel, func() context.Context { return ctx }
	w.wg.Go(func() { w.check(ctx) })
}

func (w *Warm) idle() time.Duration {
	if w.Idle > 0 {
		return w.Idle
	}
	return time.Minute
}

func (w *Warm) fill(ctx context.Context, p *place, dial dialer) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	s, err := dial(ctx)
	w.mu.Lock()
	p.coming--
	keep := err == nil && !w.closed
	if keep {
		p.ready = append(p.ready, s)
	}
	w.mu.Unlock()
	if err == nil && !keep {
		s.close()
	}
}

// put takes back a connection that may be used again.
func (w *Warm) put(address string, s *socket) {
	keep := false
	if w != nil && !s.ended() {
		w.mu.Lock()
		if p := w.places[address]; !w.closed && p != nil && len(p.ready) < mostReady {
			s.born, keep = time.Now(), true
			p.ready = append(p.ready, s)
		}
		w.mu.Unlock()
	}
	if !keep {
		s.close()
	}
}

// check lets go of connections that were not needed for too long, and of those
// that do not answer.
func (w *Warm) check(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, s := range w.stale() {
			s.close()
		}
	}
}

// stale takes away what is to be closed.
func (w *Warm) stale() []*socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	var old []*socket
	for address, p := range w.places {
		kept := p.ready[:0]
		for _, s := range p.ready {
			if s.ended() || time.Since(s.born) > w.idle() || !s.ping() {
				old = append(old, s)
				p.want = max(p.want-1, 0)
			} else {
				kept = append(kept, s)
			}
		}
		if p.ready = kept; len(kept) == 0 && p.coming == 0 && p.want == 0 {
			delete(w.places, address)
		}
	}
	return old
}

// Close lets go of all connections that wait.
func (w *Warm) Close() error {
	w.mu.Lock()
	w.closed = true
	var all []*socket
	for _, p := range w.places {
		all = append(all, p.ready...)
		p.ready = nil
	}
	if w.stop != nil {
		w.stop()
	}
	w.mu.Unlock()
	for _, s := range all {
		s.close()
	}
	w.wg.Wait()
	return nil
}
