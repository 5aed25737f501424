// Package asr holds recognizers, one provider a file.
package asr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/pipeline"
)

// DeepgramURL is where Deepgram listens.
const DeepgramURL = "wss://api.deepgram.com/v1/listen"

const (
	queueFrames = 150 // 3 s of sound may wait for a slow network
	keepAlive   = 5 * time.Second
	writeLimit  = 5 * time.Second
	closeLimit  = time.Second
	telephone   = 8000 // Hz; at this rate sound goes out as µ-law, as it came
)

// Deepgram recognizes speech by Deepgram's streaming API, version 1
// (developers.deepgram.com/reference/speech-to-text/listen-streaming).
type Deepgram struct {
	URL string // empty: DeepgramURL
	Key media.Secret
	// Dial opens the connection; nil: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Recognize implements pipeline.Recognizer.
func (d Deepgram) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	u, err := url.Parse(cmp.Or(d.URL, DeepgramURL))
	if err != nil {
		return nil, fmt.Errorf("deepgram: url: %w", err)
	}
	u.RawQuery = deepgramQuery(s).Encode()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: d.Dial}
	head := http.Header{"Authorization": {"Token " + string(d.Key)}}
	conn, resp, err := dialer.DialContext(ctx, u.String(), head)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // what is left of a handshake
	}
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("deepgram: %s", resp.Status)
		}
		return nil, fmt.Errorf("deepgram: %w", err)
	}
	return startDeepgram(conn, s.Rate), nil
}

func deepgramQuery(s pipeline.Stream) url.Values {
	q := url.Values{
		"encoding": {"mulaw"}, "sample_rate": {strconv.Itoa(s.Rate)}, "channels": {"1"},
		"interim_results": {"true"}, "endpointing": {"false"}, "punctuate": {"true"},
		"no_delay": {"true"}, "model": {"nova-3"},
	}
	if s.Rate != telephone {
		q.Set("encoding", "linear16")
	}
	if s.Model != "" {
		q.Set("model", s.Model)
	}
	if s.Language != "" {
		q.Set("language", s.Language)
	}
	return q
}

// A message is what is sent: sound, or text that controls the stream.
type message struct {
	kind int // of the WebSocket message
	body []byte
}

// A stream is one connection. Its writer owns the sending side and its reader
// the receiving one; Close waits for both.
type stream struct {
	conn    *websocket.Conn
	rate    int
	queue   chan message // in order
	free    chan []byte  // buffers of sound to use again
	results chan pipeline.Result
	full    atomic.Bool
	stop    chan struct{}
	wg      sync.WaitGroup
	once    sync.Once

	mu  sync.Mutex
	err error
}

func startDeepgram(conn *websocket.Conn, rate int) *stream {
	s := &stream{
		conn: conn, rate: rate, stop: make(chan struct{}), results: make(chan pipeline.Result, 16),
		queue: make(chan message, queueFrames+8), free: make(chan []byte, queueFrames),
	}
	for range queueFrames {
		s.free <- make([]byte, 2*media.FrameLen(rate))
	}
	s.wg.Go(s.write)
	s.wg.Go(s.read)
	return s
}

// Rate implements media.Sink.
func (s *stream) Rate() int { return s.rate }

// WriteFrame implements media.Sink.
func (s *stream) WriteFrame(f media.Frame) error {
	var b []byte
	select {
	case b = <-s.free:
	default:
		// The network is more than queueFrames behind: what would come of this
		// stream now is of no use, so it ends and another is opened.
		if !s.full.Swap(true) {
			s.fail(errors.New("deepgram: takes sound too slowly"))
		}
		return errors.New("deepgram: queue is full")
	}
	if s.rate == telephone {
		b = b[:codec.PCMU{}.Encode(b[:cap(b)], f)]
	} else {
		b = b[:0]
		for _, x := range f {
			b = append(b, byte(x), byte(uint16(x)>>8)) //nolint:gosec // little-endian
		}
	}
	s.queue <- message{websocket.BinaryMessage, b} // there is room: each buffer of free has its place
	return nil
}

// Finalize implements pipeline.Recognition.
func (s *stream) Finalize() error { return s.control(`{"type":"Finalize"}`) }

// control queues a message behind the sound that is there.
func (s *stream) control(text string) error {
	select {
	case s.queue <- message{websocket.TextMessage, []byte(text)}:
		return nil
	default: // the stream is stuck and about to end
		return errors.New("deepgram: queue is full")
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
	if s.err == nil {
		s.err = err
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

func (s *stream) write() {
	defer func() { _ = s.conn.Close() }() // wakes the reader, whatever ended the writer
	idle := time.NewTicker(keepAlive)
	defer idle.Stop()
	for {
		select {
		case m := <-s.queue:
			if !s.send(m.kind, m.body) {
				return
			}
			if m.kind == websocket.BinaryMessage {
				s.free <- m.body[:cap(m.body)]
			}
			idle.Reset(keepAlive)
		case <-idle.C:
			if !s.send(websocket.TextMessage, []byte(`{"type":"KeepAlive"}`)) {
				return
			}
		case <-s.stop:
			s.send(websocket.TextMessage, []byte(`{"type":"CloseStream"}`))
			return // nobody reads what would still come
		}
	}
}

func (s *stream) send(kind int, b []byte) bool {
	limit := writeLimit
	if s.stopped() {
		limit = closeLimit
	}
	err := s.conn.SetWriteDeadline(time.Now().Add(limit))
	if err == nil {
		err = s.conn.WriteMessage(kind, b)
	}
	if err != nil && !s.stopped() {
		s.fail(fmt.Errorf("deepgram: send: %w", err))
	}
	return err == nil
}

func (s *stream) read() {
	defer close(s.results)
	for {
		_, b, err := s.conn.ReadMessage()
		if err != nil {
			if !s.stopped() {
				s.fail(fmt.Errorf("deepgram: receive: %w", err))
			}
			return
		}
		r, ok, err := parseDeepgram(b)
		if err != nil {
			s.fail(err)
			return
		}
		if !ok {
			continue
		}
		select {
		case s.results <- r:
		case <-s.stop:
			return
		}
	}
}

// deepgramMessage is what Deepgram sends, as far as it matters here.
type deepgramMessage struct {
	Type         string  `json:"type"`
	IsFinal      bool    `json:"is_final"`
	FromFinalize bool    `json:"from_finalize"`
	Start        float64 `json:"start"`
	Duration     float64 `json:"duration"`
	Description  string  `json:"description"`
	Channel      struct {
		Alternatives []struct {
			Transcript string  `json:"transcript"`
			Confidence float64 `json:"confidence"`
			Words      []struct {
				Word       string  `json:"word"`
				Punctuated string  `json:"punctuated_word"`
				Start      float64 `json:"start"`
				End        float64 `json:"end"`
			} `json:"words"`
		} `json:"alternatives"`
	} `json:"channel"`
}

// parseDeepgram returns the result in a message, where it holds one.
func parseDeepgram(b []byte) (pipeline.Result, bool, error) {
	var m struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return pipeline.Result{}, false, fmt.Errorf("deepgram: not JSON: %w", err)
	}
	if m.Type != "Results" && m.Type != "Error" {
		return pipeline.Result{}, false, nil // Metadata, SpeechStarted and what is yet to come
	}
	var d deepgramMessage
	if err := json.Unmarshal(b, &d); err != nil {
		return pipeline.Result{}, false, fmt.Errorf("deepgram: %s: %w", m.Type, err)
	}
	if d.Type == "Error" {
		return pipeline.Result{}, false, fmt.Errorf("deepgram: %s", d.Description)
	}
	r := pipeline.Result{
		Final: d.IsFinal, Finalized: d.FromFinalize,
		Start: seconds(d.Start), End: seconds(d.Start + d.Duration),
	}
	if len(d.Channel.Alternatives) > 0 {
		best := d.Channel.Alternatives[0]
		r.Text, r.Confidence = best.Transcript, best.Confidence
		for _, w := range best.Words {
			text := w.Punctuated
			if text == "" {
				text = w.Word
			}
			r.Words = append(r.Words, pipeline.Word{Text: text, Start: seconds(w.Start), End: seconds(w.End)})
		}
	}
	return r, true, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
