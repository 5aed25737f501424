// Package asr contains the speech-to-text clients, one provider per file. Most share the type
// stream, which sends audio and receives results.
package asr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/wsdial"
)

const (
	queueFrames = 550 // 11 s of audio: a new stream may first receive that much past audio
	behind      = 2   // number of waiting messages at which the writer counts as late
	lateFrames  = 5   // frames per message while the writer is late, so that few messages wait
	spareFrames = 16  // most buffers of a frame kept for reuse
	spareChunks = 4   // most buffers of a message kept for reuse
	keepAlive   = 5 * time.Second
	writeLimit  = 5 * time.Second
	closeLimit  = time.Second
	telephone   = 8000 // Hz; at this rate audio is sent as µ-law
)

// A protocol describes a provider to a stream.
type protocol struct {
	name string
	// These are control messages. hello is sent first, alive after keepAlive without other messages
	// (empty sends a ping), finalize for Finalize, and bye last.
	hello, alive, finalize, bye string
	// chunk is the least audio per message, a multiple of a frame. SetBatch can make messages longer.
	chunk time.Duration
	// fullChunks means that the provider rejects messages with less audio than chunk.
	fullChunks bool
	// maxSilent is the number of successive Finalizes without any response after which the provider
	// counts as broken; 0 disables the check.
	maxSilent int
	// finalizeOnly means that text comes only after Finalize.
	finalizeOnly bool
	// linear means that audio is 16-bit little-endian PCM even at 8 kHz. Otherwise it is µ-law there.
	linear bool
	// pack wraps audio in a message; nil sends the audio as a binary message.
	pack func(sound []byte) (message, error)
	// parse parses a message of the provider. It returns a *pipeline.RefusedError for a message that
	// refuses the stream.
	parse func(b []byte) (update, error)
	// closeStatus returns the HTTP status for the provider's WebSocket close code. 0 means that the
	// close is no refusal. If closeStatus is nil, no close is a refusal.
	closeStatus func(code int) int
}

// A message is outgoing audio or control text.
type message struct {
	kind     int // type of the WebSocket message
	body     []byte
	finalize bool // the message is a Finalize
	frames   int  // number of frames in the body
}

func text(s string) message { return message{kind: websocket.TextMessage, body: []byte(s)} }

// A stream is a pipeline.Recognition over one connection. Three goroutines write audio, read messages
// and deliver results. Close waits for all of them.
type stream struct {
	protocol
	conn      transport
	sent      http.Header // headers of the request, which may hold keys
	rate      int
	position  atomic.Int64 // duration of the audio taken from queue
	queue     chan message // messages to send, in order
	waiting   atomic.Int64 // number of frames in queue
	free      chan []byte  // audio buffers for reuse
	received  chan []byte  // messages from the provider
	readErr   error        // why reading ended; valid once received is closed
	finalizes chan time.Duration
	results   chan pipeline.Result
	full      atomic.Bool
	sendErr   atomic.Pointer[error] // why the writer failed; reported after the messages received before
	stop      chan struct{}
	broken    chan struct{} // closed by fail
	wg        sync.WaitGroup
	once      sync.Once

	collecting sync.Mutex // held while the fields below are used
	collected  message    // audio for the next message
	batch      time.Duration

	mu  sync.Mutex
	err error
}

func open(
	ctx context.Context, p protocol, rate int, address string, query url.Values, head http.Header, dial wsdial.DialFunc,
) (*stream, error) {
	conn, err := wsdial.Open(ctx, p.name, address, query, head, dial)
	if err != nil {
		return nil, err
	}
	return start(p, rate, socket{conn}, head), nil
}

// start starts a stream over an open connection. The stream closes the connection. head holds the
// headers of the handshake.
func start(p protocol, rate int, conn transport, head http.Header) *stream {
	s := &stream{
		protocol: p, conn: conn, sent: head, rate: rate, stop: make(chan struct{}), broken: make(chan struct{}),
		results: make(chan pipeline.Result, 16), received: make(chan []byte, 16), finalizes: make(chan time.Duration, 8),
		queue: make(chan message, queueFrames/lateFrames+behind+8), free: make(chan []byte, spareChunks),
	}
	if p.hello != "" {
		s.queue <- text(p.hello)
	}
	s.wg.Go(s.write)
	s.wg.Go(s.read)
	s.wg.Go(s.deliver)
	return s
}

// Rate implements media.Sink.
func (s *stream) Rate() int { return s.rate }

// WriteFrame implements media.Sink.
func (s *stream) WriteFrame(f media.Frame) error {
	if s.waiting.Load() >= queueFrames {
		// The network is more than queueFrames behind. The results would come too late, so the stream
		// ends. The caller may open another one.
		if !s.full.Swap(true) {
			s.fail(fmt.Errorf("%s: provider accepts audio too slowly", s.name))
		}
		return fmt.Errorf("%s: queue is full", s.name)
	}
	s.collecting.Lock()
	defer s.collecting.Unlock()
	s.collect(f)
	return s.passOnIfEnough()
}

// passOnIfEnough passes the collected audio to the writer if it is long enough for a message.
func (s *stream) passOnIfEnough() error {
	least := max(s.chunk, s.batch)
	if len(s.queue) > behind {
		least = max(least, lateFrames*media.FrameTime)
	}
	if time.Duration(s.collected.frames)*media.FrameTime < least {
		return nil
	}
	return s.passOn()
}

// collect adds a frame to the collected audio.
func (s *stream) collect(f media.Frame) {
	m := &s.collected
	if m.body == nil {
		select {
		case m.body = <-s.free:
		default: // all buffers are in use
			m.body = make([]byte, 0, lateFrames*s.frameBytes())
		}
	}
	m.frames++
	if s.isMulaw() {
		n := len(m.body)
		m.body = slices.Grow(m.body, len(f))[:n+len(f)]
		codec.PCMU{}.Encode(m.body[n:], f)
		return
	}
	for _, x := range f {
		m.body = append(m.body, byte(x), byte(uint16(x)>>8)) //nolint:gosec // little-endian
	}
}

// passOn passes the collected audio to the writer.
func (s *stream) passOn() error {
	m := s.collected
	if m.frames == 0 {
		return nil
	}
	m.kind = websocket.BinaryMessage
	s.waiting.Add(int64(m.frames))
	select {
	case s.queue <- m:
		s.collected = message{}
		return nil
	default: // control messages fill the rest of the queue; the stream is about to end
		s.waiting.Add(-int64(m.frames))
		s.collected.frames, s.collected.body = 0, m.body[:0]
		return fmt.Errorf("%s: queue is full", s.name)
	}
}

// SetBatch implements pipeline.Batcher.
func (s *stream) SetBatch(d time.Duration) {
	s.collecting.Lock()
	defer s.collecting.Unlock()
	s.batch = d
}

// catchUp passes on the audio that was collected while the writer was late.
func (s *stream) catchUp() bool {
	s.collecting.Lock()
	defer s.collecting.Unlock()
	return s.passOnIfEnough() == nil
}

// isMulaw reports whether audio is sent as µ-law.
func (s *stream) isMulaw() bool { return s.rate == telephone && !s.linear }

// frameBytes returns the encoded size of a frame.
func (s *stream) frameBytes() int {
	if s.isMulaw() {
		return media.FrameLen(s.rate)
	}
	return 2 * media.FrameLen(s.rate)
}

// FinalizeOnly implements pipeline.FinalizeOnly.
func (s *stream) FinalizeOnly() bool { return s.finalizeOnly }

// Finalize implements pipeline.Recognition. The message follows the audio. If the provider requires
// full chunks, a shorter rest of the audio waits for more. That rest contains no speech, because
// silence precedes a Finalize.
func (s *stream) Finalize() error {
	m := text(s.finalize)
	m.finalize = true
	s.collecting.Lock()
	defer s.collecting.Unlock()
	if !s.fullChunks || time.Duration(s.collected.frames)*media.FrameTime >= s.chunk {
		if err := s.passOn(); err != nil {
			return err
		}
	}
	select {
	case s.queue <- m:
		return nil
	default: // the stream is about to end
		return fmt.Errorf("%s: queue is full", s.name)
	}
}

// Results implements pipeline.Recognition.
func (s *stream) Results() <-chan pipeline.Result { return s.results }

// Close implements pipeline.Recognition.
func (s *stream) Close() error {
	s.once.Do(func() {
		close(s.stop)
		s.conn.hurry(time.Now().Add(closeLimit)) // a stuck network must not delay the end of the call
	})
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fail ends the stream. The first error is kept.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && err != nil && !s.stopped() {
		s.err = err
		close(s.broken)
	}
	s.conn.close() // closing wakes the reader
}

// refusal adds the name of the provider to err. It removes secrets from the text of a RefusedError.
func (s *stream) refusal(err error) error {
	if refused, ok := errors.AsType[*pipeline.RefusedError](err); ok {
		safe := *refused
		safe.Text = pipeline.Redact(refused.Text, s.sent, nil)
		err = &safe
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

func (s *stream) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// write sends the messages of the queue.
func (s *stream) write() {
	defer s.conn.close() // closing wakes the reader
	idle := time.NewTimer(keepAlive)
	defer idle.Stop()
	var at time.Duration // position of the audio
	last := time.Now()   // when a message was sent
	for {
		var ok bool
		select {
		case m := <-s.queue:
			last = time.Now()
			if m.kind == websocket.BinaryMessage {
				at += time.Duration(m.frames) * media.FrameTime
				s.waiting.Add(-int64(m.frames))
				s.position.Store(int64(at))
				ok = s.sendAudio(m)
			} else {
				ok = s.control(m, at)
			}
		case <-idle.C: // resetting the timer for each message would cost more
			if ok = true; time.Since(last) >= keepAlive {
				last = time.Now()
				ok = s.sendKeepAlive()
			}
			idle.Reset(keepAlive - time.Since(last))
		case <-s.broken:
			return
		case <-s.stop:
			s.send(text(s.bye))
			return // the rest of the queue is not needed
		}
		if !ok {
			return
		}
	}
}

// sendAudio sends audio and keeps its buffer for reuse.
func (s *stream) sendAudio(m message) bool {
	sound := m.body
	if s.pack != nil {
		var err error
		if m, err = s.pack(sound); err != nil {
			s.fail(fmt.Errorf("%s: %w", s.name, err))
			return false
		}
	}
	ok := s.send(m) && s.catchUp()
	select {
	case s.free <- sound[:0]:
	default: // free is full
	}
	return ok
}

// control sends a control message. It passes a Finalize to deliver before sending it, so that the
// tracker knows the request when the answer comes.
func (s *stream) control(m message, at time.Duration) bool {
	if m.finalize {
		select {
		case s.finalizes <- at:
		case <-s.stop:
			return true
		case <-s.broken:
			return false
		}
	}
	return s.send(m)
}

func (s *stream) sendKeepAlive() bool {
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
	err := s.conn.send(m, time.Now().Add(limit))
	if err != nil && !s.stopped() {
		unsent := fmt.Errorf("%s: send: %w", s.name, err)
		s.sendErr.CompareAndSwap(nil, &unsent)
	}
	return err == nil
}

func (s *stream) read() {
	defer close(s.received)
	for {
		b, err := s.conn.receive()
		if err != nil {
			s.readErr = s.endReason(err)
			return
		}
		select {
		case s.received <- b:
		case <-s.stop:
			return
		case <-s.broken:
			return
		}
	}
}

// endReason converts the error that ended the connection. It removes secrets.
func (s *stream) endReason(err error) error {
	var closed *websocket.CloseError
	var refused *pipeline.RefusedError
	switch {
	case errors.As(err, &refused):
		return s.refusal(err)
	case errors.As(err, &closed) && s.closeStatus != nil:
		if status := s.closeStatus(closed.Code); status != 0 {
			return s.refusal(&pipeline.RefusedError{Status: status, Text: closed.Text})
		}
	}
	if closed != nil {
		err = errors.New(pipeline.Redact(err.Error(), s.sent, nil)) // the reason of the close may hold the key
	}
	return fmt.Errorf("%s: receive: %w", s.name, err)
}

const errSilent = pipeline.TimeoutError("provider does not respond")

// deliver turns the provider's messages into results until the stream ends.
func (s *stream) deliver() {
	defer close(s.results)
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	zero := time.Now()
	l := tracker{maxSilent: s.maxSilent}
	for {
		var out []pipeline.Result
		var err error
		select {
		case at := <-s.finalizes:
			l.addRequest(at, time.Since(zero))
		case b, ok := <-s.received:
			if !ok {
				var refused *pipeline.RefusedError
				if err := s.sendErr.Load(); err != nil && !errors.As(s.readErr, &refused) {
					s.fail(*err)
				}
				s.fail(s.readErr)
				return
			}
			s.addRequests(&l, time.Since(zero)) // select takes either channel if both are ready
			var h update
			if h, err = s.parse(b); err == nil {
				l.heard = time.Duration(s.position.Load())
				out = l.onUpdate(h)
			}
		case <-due.C:
			out, err = l.onTimeout(time.Since(zero))
		case <-s.stop:
			return
		}
		if err != nil {
			s.fail(s.refusal(err))
			return
		}
		if !s.yield(out) {
			return
		}
		if at, ok := l.nextTimeout(); ok {
			due.Reset(at - time.Since(zero))
		}
	}
}

// addRequests records the Finalizes that were sent. A message may answer each of them.
func (s *stream) addRequests(l *tracker, now time.Duration) {
	for {
		select {
		case at := <-s.finalizes:
			l.addRequest(at, now)
		default:
			return
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
