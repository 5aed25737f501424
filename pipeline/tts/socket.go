package tts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

const (
	writeLimit = 5 * time.Second
	telephone  = 8000 // Hz; at this rate speech is µ-law
	inQueue    = 64   // most received messages that may wait for Audio
)

// A message is a WebSocket message from a provider.
type message struct {
	kind int // type of the WebSocket message
	body []byte
}

// A peer describes a provider to the sockets that connect to it.
type peer struct {
	name   string
	header http.Header  // headers of the handshake; hold keys
	secret media.Secret // a key that is sent in messages instead of header; removed from errors
	dial   wsdial.DialFunc
	// onClose translates a WebSocket close code and reason into an HTTP status and a text for the
	// operator. Status 0 means that the close is no refusal. If onClose is nil, no close is a refusal.
	onClose func(code int, reason string) (status int, text string)
	// keepAlive is a message for idle connections of a Pool, sent every 10 s; nil sends pings only.
	keepAlive any
}

// open connects to a peer.
func (p peer) open(ctx context.Context, address string, query url.Values) (*socket, error) {
	conn, err := wsdial.Open(ctx, p.name, address, query, p.header, p.dial)
	if err != nil {
		return nil, err
	}
	return newSocket(p, conn), nil
}

// refused returns an error with the provider's text: a RefusedError, or a plain error if status is 0.
func (p peer) refused(status int, text string) error {
	keys := p.header.Clone()
	if p.secret != "" {
		keys = http.Header{"Key": {string(p.secret)}}
	}
	text = pipeline.Redact(text, keys, nil)
	if status == 0 {
		return fmt.Errorf("%s: %s", p.name, text)
	}
	return fmt.Errorf("%s: %w", p.name, &pipeline.RefusedError{Status: status, Text: text})
}

// A socket is a connection to a voice provider. Its reader starts with the connection, so that it
// also detects the end of an idle connection.
type socket struct {
	peer
	conn        *websocket.Conn
	in          chan message // closed when the connection has ended
	err         error        // why the connection ended; valid once in is closed
	stop        chan struct{}
	readDone    chan struct{} // closed when the reader has ended
	once        sync.Once
	idleSince   time.Time
	missedPongs atomic.Int32 // pings since the last pong
	flushes     []time.Time  // times of Deepgram's Flush messages, newest last; only the writing goroutine uses it

	mu sync.Mutex // serializes writing
}

func newSocket(p peer, conn *websocket.Conn) *socket {
	s := &socket{
		peer: p, conn: conn, idleSince: time.Now(), in: make(chan message, inQueue),
		stop: make(chan struct{}), readDone: make(chan struct{}),
	}
	conn.SetPongHandler(func(string) error { s.missedPongs.Store(0); return nil })
	go s.read()
	return s
}

func (s *socket) read() {
	defer close(s.readDone)
	defer close(s.in)
	for {
		kind, b, err := s.conn.ReadMessage()
		if err != nil {
			s.err = s.closeError(err)
			return
		}
		select {
		case s.in <- message{kind, b}: // blocks while Audio is inQueue messages behind
		case <-s.stop:
			return
		}
	}
}

// closeError converts the error that ended the connection.
func (s *socket) closeError(err error) error {
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
		if s.onClose != nil {
			if status, text := s.onClose(closed.Code, closed.Text); status != 0 {
				return s.refused(status, text)
			}
		}
		return s.refused(0, "receive: "+err.Error()) // the reason may hold the key
	}
	return fmt.Errorf("%s: receive: %w", s.name, err)
}

// recentFlushes returns the number of flushes within flushWindow.
func (s *socket) recentFlushes(now time.Time) int {
	for len(s.flushes) > 0 && now.Sub(s.flushes[0]) >= flushWindow {
		s.flushes = s.flushes[1:]
	}
	return len(s.flushes)
}

// ended reports whether the connection has ended.
func (s *socket) ended() bool {
	select {
	case <-s.readDone:
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
	if err != nil {
		return fmt.Errorf("%s: send: %w", s.name, err)
	}
	return s.write(b)
}

// write sends a text message.
func (s *socket) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.conn.SetWriteDeadline(time.Now().Add(writeLimit))
	if err == nil {
		err = s.conn.WriteMessage(websocket.TextMessage, b)
	}
	if err != nil {
		return fmt.Errorf("%s: send: %w", s.name, err)
	}
	return nil
}

// speech yields the speech that onMessage returns for each message, until done returns true. A
// signal on wake makes it check done again.
func (s *socket) speech(
	wake <-chan struct{}, done func() bool, onMessage func(message) (pipeline.Speech, error),
) iter.Seq2[pipeline.Speech, error] {
	return func(yield func(pipeline.Speech, error) bool) {
		for !done() {
			select {
			case <-wake:
			case r, ok := <-s.in:
				if !ok {
					if !s.closed() {
						yield(pipeline.Speech{}, s.err)
					}
					return
				}
				sp, err := onMessage(r)
				if err != nil {
					yield(pipeline.Speech{}, err)
					return
				}
				if (len(sp.PCM) > 0 || len(sp.Words) > 0) && !yield(sp, nil) {
					return
				}
			}
		}
	}
}

// ping sends a ping. It returns false if sending fails or the last two pings were not answered.
func (s *socket) ping() bool {
	if s.keepAlive != nil && s.send(s.keepAlive) != nil {
		return false
	}
	return s.missedPongs.Add(1) <= 2 && s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)) == nil
}

// close closes the connection and waits for the reader. Waiting readers and writers return.
func (s *socket) close() {
	s.once.Do(func() {
		close(s.stop)
		_ = s.conn.Close()
	})
	<-s.readDone
}

// A Pool keeps idle connections to voice providers, so that an utterance need not wait for a
// handshake. Each time an address has no idle connection, the pool keeps one more for it, up to
// maxReady. It closes a connection that is idle for longer than Idle. The zero value is ready to
// use. After Close, each utterance opens a connection of its own.
type Pool struct {
	Idle time.Duration // 0 means 1 min; must be below the provider's own idle limit

	mu      sync.Mutex
	entries map[string]*poolEntry
	stop    context.CancelFunc
	ctx     func() context.Context // returns the context of dials; nil before the first dial
	closed  bool
	wg      sync.WaitGroup
}

const (
	maxReady   = 16 // most connections per address
	dialLimit  = 5 * time.Second
	checkEvery = 10 * time.Second
)

// A poolEntry holds the connections of one address.
type poolEntry struct {
	ready   []*socket // idle connections, newest last
	opening int       // number of dials in progress
	want    int       // number of idle connections to keep
}

type dialFunc func(ctx context.Context) (*socket, error)

// get returns an idle or a new connection, and refills the pool. A nil Pool always dials.
func (w *Pool) get(ctx context.Context, address string, dial dialFunc) (*socket, error) {
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

// take returns an idle connection, or nil.
func (w *Pool) take(address string) *socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.start()
	p := w.entries[address]
	if p == nil {
		p = &poolEntry{}
		w.entries[address] = p
	}
	var s *socket
	for n := len(p.ready); n > 0 && s == nil; n = len(p.ready) {
		if s, p.ready = p.ready[n-1], p.ready[:n-1]; s.ended() || time.Since(s.idleSince) > w.idle() {
			w.wg.Go(s.close)
			s = nil
		}
	}
	if s == nil {
		p.want = min(p.want+1, maxReady)
	}
	return s
}

// refill opens the missing connections of an address.
func (w *Pool) refill(address string, dial dialFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.entries[address]
	if w.closed || p == nil {
		return
	}
	for ; len(p.ready)+p.opening < p.want; p.opening++ {
		ctx := w.ctx()
		w.wg.Go(func() { w.fill(ctx, p, dial) })
	}
}

// start starts the goroutine that checks the connections, once.
func (w *Pool) start() {
	if w.entries != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.entries, w.stop, w.ctx = map[string]*poolEntry{}, cancel, func() context.Context { return ctx }
	w.wg.Go(func() { w.check(ctx) })
}

func (w *Pool) idle() time.Duration {
	if w.Idle > 0 {
		return w.Idle
	}
	return time.Minute
}

func (w *Pool) fill(ctx context.Context, p *poolEntry, dial dialFunc) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	s, err := dial(ctx)
	w.mu.Lock()
	p.opening--
	keep := err == nil && !w.closed
	if keep {
		p.ready = append(p.ready, s)
	}
	w.mu.Unlock()
	if err == nil && !keep {
		s.close()
	}
}

// put takes back a connection for reuse, or closes it. A nil Pool closes it.
func (w *Pool) put(address string, s *socket) {
	keep := false
	if w != nil && !s.ended() {
		w.mu.Lock()
		if p := w.entries[address]; !w.closed && p != nil && len(p.ready) < maxReady {
			s.idleSince, keep = time.Now(), true
			p.ready = append(p.ready, s)
		}
		w.mu.Unlock()
	}
	if !keep {
		s.close()
	}
}

// check closes stale connections every checkEvery until ctx ends.
func (w *Pool) check(ctx context.Context) {
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

// stale removes connections that have ended, are idle too long or do not answer pings, and returns them for closing.
func (w *Pool) stale() []*socket {
	w.mu.Lock()
	defer w.mu.Unlock()
	var old []*socket
	for address, p := range w.entries {
		kept := p.ready[:0]
		for _, s := range p.ready {
			if s.ended() || time.Since(s.idleSince) > w.idle() || !s.ping() {
				old = append(old, s)
				p.want = max(p.want-1, 0)
			} else {
				kept = append(kept, s)
			}
		}
		p.ready = kept
		if len(kept) > 0 || p.opening > 0 {
			continue
		}
		if p.want--; p.want <= 0 { // dials fail, or no utterance uses the address any more
			delete(w.entries, address)
		}
	}
	return old
}

// Close closes all idle connections.
func (w *Pool) Close() error {
	w.mu.Lock()
	w.closed = true
	var all []*socket
	for _, p := range w.entries {
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
