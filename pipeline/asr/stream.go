// Package asr holds recognizers, one provider a file, on one core that streams
// sound out and results in.
package asr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wire"
)

const (
	queueFrames = 550 // 11 s of sound may wait for a slow network: a new stream is told the past at once
	spareFrames = 16  // buffers that are kept to use again
	keepAlive   = 5 * time.Second
	writeLimit  = 5 * time.Second
	closeLimit  = time.Second
	telephone   = 8000 // Hz; at this rate sound goes out as µ-law, as it came
)

// A protocol is what differs between providers.
type protocol struct {
	name string
	// What is sent: once at first; where nothing else was for keepAlive (empty:
	// a WebSocket ping); to have what is open made final; and last of all.
	hello, alive, finalize, bye string
	// chunk is how much sound goes in one message, a multiple of a frame.
	chunk time.Duration
	// whole means that less than a chunk is never sent: the provider refuses it.
	whole bool
	// quiet is how many times in a row the provider may leave Finalize without
	// any message before it counts as broken; 0 is never.
	quiet int
	// reticent: it tells no words before Finalize.
	reticent bool
	// pack makes a message of sound, which is µ-law at 8 kHz, else 16-bit
	// little-endian PCM; nil: binary, as it is.
	pack func(sound []byte) (message, error)
	// parse reads a message of the provider.
	parse func(b []byte) (heard, error)
}

// A message is what is sent: sound, or text that controls the stream.
type message struct {
	kind int // of the WebSocket message
	body []byte
	ask  bool // for what is final
}

func text(s string) message { return message{kind: websocket.TextMessage, body: []byte(s)} }

// A stream is one connection. Its writer owns the sending side, its reader the
// receiving one, and its teller the results; Close waits for all.
type stream struct {
	protocol
	conn    *websocket.Conn
	rate    int
	queue   chan message // in order
	free    chan []byte  // buffers of sound to use again
	came    chan []byte  // from the provider
	cut     error        // why nothing more comes; there once came is closed
	asked   chan time.Duration
	results chan pipeline.Result
	full    atomic.Bool
	unsent  atomic.Pointer[error] // why the writer gave up; what came before is told first
	stop    chan struct{}
	broken  chan struct{} // the writer or the teller gave up
	wg      sync.WaitGroup
	once    sync.Once

	mu  sync.Mutex
	err error
}

// open connects and starts a stream.
func open(ctx context.Context, p protocol, rate int, address string, query url.Values, head http.Header, dial wire.Dial) (*stream, error) {
	conn, err := wire.Open(ctx, p.name, address, query, head, dial)
	if err != nil {
		return nil, err
	}
	s := &stream{
		protocol: p, conn: conn, rate: rate, stop: make(chan struct{}), broken: make(chan struct{}),
		results: make(chan pipeline.Result, 16), came: make(chan []byte, 16), asked: make(chan time.Duration, 8),
		queue: make(chan message, queueFrames+8), free: make(chan []byte, spareFrames),
	}
	if p.hello != "" {
		s.queue <- text(p.hello)
	}
	s.wg.Go(s.write)
	s.wg.Go(s.read)
	s.wg.Go(s.tell)
	return s, nil
}

// Rate implements media.Sink.
func (s *stream) Rate() int { return s.rate }

// WriteFrame implements media.Sink.
func (s *stream) WriteFrame(f media.Frame) error {
	if len(s.queue) >= queueFrames {
		// The network is more than queueFrames behind: what would come of this
		// stream now is of no use, so it ends and another is opened.
		if !s.full.Swap(true) {
			s.fail(fmt.Errorf("%s: takes sound too slowly", s.name))
		}
		return fmt.Errorf("%s: queue is full", s.name)
	}
	var b []byte
	select {
	case b = <-s.free:
	default: // the queue grew
		b = make([]byte, s.frameBytes())
	}
	if s.rate == telephone {
		b = b[:codec.PCMU{}.Encode(b[:cap(b)], f)]
	} else {
		b = b[:0]
		for _, x := range f {
			b = append(b, byte(x), byte(uint16(x)>>8)) //nolint:gosec // little-endian
		}
	}
	select {
	case s.queue <- message{kind: websocket.BinaryMessage, body: b}:
		return nil
	default: // what little room was left is taken by questions: the stream is stuck and about to end
		return fmt.Errorf("%s: queue is full", s.name)
	}
}

// frameBytes is how much a frame of sound is on its way out.
func (s *stream) frameBytes() int {
	if s.rate == telephone {
		return media.FrameLen(s.rate)
	}
	return 2 * media.FrameLen(s.rate)
}

// Reticent implements pipeline.Reticent.
func (s *stream) Reticent() bool { return s.reticent }

// Finalize implements pipeline.Recognition. It queues behind the sound that is
// there.
func (s *stream) Finalize() error {
	m := text(s.finalize)
	m.ask = true
	select {
	case s.queue <- m:
		return nil
	default: // the stream is stuck and about to end
		return fmt.Errorf("%s: queue is full", s.name)
	}
}

// Results implements pipeline.Recognition.
func (s *stream) Results() <-chan pipeline.Result { return s.results }

// Close implements pipeline.Recognition.
func (s *stream) Close() error {
	s.once.Do(func() {
		close(s.stop)
		_ = s.conn.NetConn().SetWriteDeadline(time.Now().Add(closeLimit)) // a stuck network must not hold the call's end
	})
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fail ends the stream for a reason; the first counts.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && err != nil && !s.stopped() {
		s.err = err
		close(s.broken)
	}
	_ = s.conn.Close() // wakes the reader
}

func (s *stream) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// write sends what is queued. Sound is gathered into chunks.
func (s *stream) write() {
	defer func() { _ = s.conn.Close() }() // wakes the reader, whatever ended the writer
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	var sound []byte
	var at time.Duration // of sound that was queued
	for {
		var ok bool
		select {
		case m := <-s.queue:
			if m.kind == websocket.BinaryMessage {
				at += media.FrameTime
				sound = append(sound, m.body...)
				select {
				case s.free <- m.body[:cap(m.body)]:
				default: // more than that many wait at once only now and then
				}
				if s.length(sound) < s.chunk {
					continue
				}
			}
			if sound, ok = s.flush(sound); ok && m.kind == websocket.TextMessage {
				ok = s.control(m, at)
			}
			idle.Reset(keepAlive)
		case <-idle.C:
			ok = s.keep()
		case <-s.broken:
			return
		case <-s.stop:
			s.send(text(s.bye))
			return // nobody reads what would still come
		}
		if !ok {
			return
		}
	}
}

// length is how long sound lasts.
func (s *stream) length(sound []byte) time.Duration {
	n := len(sound)
	if s.rate != telephone {
		n /= 2
	}
	return time.Duration(n) * time.Second / time.Duration(s.rate)
}

// flush sends the sound that was gathered. What is less than a chunk stays where
// the provider wants whole ones: it is silence, for silence made the caller ask.
func (s *stream) flush(sound []byte) ([]byte, bool) {
	if len(sound) == 0 || s.whole && s.length(sound) < s.chunk {
		return sound, true
	}
	m := message{kind: websocket.BinaryMessage, body: sound}
	if s.pack != nil {
		var err error
		if m, err = s.pack(sound); err != nil {
			s.fail(fmt.Errorf("%s: %w", s.name, err))
			return nil, false
		}
	}
	return sound[:0], s.send(m)
}

// control sends a message that is no sound. The teller knows of a question
// before the provider does.
func (s *stream) control(m message, at time.Duration) bool {
	if m.ask {
		select {
		case s.asked <- at:
		case <-s.stop:
			return true
		case <-s.broken:
			return false
		}
	}
	return s.send(m)
}

func (s *stream) keep() bool {
	if s.alive == "" {
		return s.send(message{kind: websocket.PingMessage})
	}
	return s.send(text(s.alive))
}

func (s *stream) send(m message) bool {
	limit := writeLimit
	if s.stopped() {
		limit = closeLimit
	}
	err := s.conn.SetWriteDeadline(time.Now().Add(limit))
	if err == nil {
		err = s.conn.WriteMessage(m.kind, m.body)
	}
	if err != nil && !s.stopped() {
		unsent := fmt.Errorf("%s: send: %w", s.name, err)
		s.unsent.CompareAndSwap(nil, &unsent)
	}
	return err == nil
}

// read takes what comes.
func (s *stream) read() {
	defer close(s.came)
	for {
		_, b, err := s.conn.ReadMessage()
		if err != nil {
			s.cut = fmt.Errorf("%s: receive: %w", s.name, err)
			return
		}
		select {
		case s.came <- b:
		case <-s.stop:
			return
		case <-s.broken:
			return
		}
	}
}

var errSilent = errors.New("does not answer")

// tell turns what comes into results.
func (s *stream) tell() {
	defer close(s.results)
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	zero := time.Now()
	l := ledger{quiet: s.quiet}
	for {
		var out []pipeline.Result
		var err error
		select {
		case at := <-s.asked:
			l.ask(at, time.Since(zero))
		case b, ok := <-s.came:
			if !ok {
				if err := s.unsent.Load(); err != nil {
					s.fail(*err)
				}
				s.fail(s.cut)
				return
			}
			var h heard
			if h, err = s.parse(b); err == nil {
				out = l.take(h)
			}
		case <-due.C:
			out, err = l.late(time.Since(zero))
		case <-s.stop:
			return
		}
		if err != nil {
			s.fail(fmt.Errorf("%s: %w", s.name, err))
			return
		}
		if !s.yield(out) {
			return
		}
		if at, ok := l.due(); ok {
			due.Reset(at - time.Since(zero))
		}
	}
}

func (s *stream) yield(results []pipeline.Result) bool {
	for _, r := range results {
		select {
		case s.results <- r:
		case <-s.stop:
			return false
		}
	}
	return true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
