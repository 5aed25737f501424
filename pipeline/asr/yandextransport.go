package asr

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/parley-voice/parley/pipeline/grpcstream"
)

// Control messages that a stream sends to its yandexTransport. They do not go to SpeechKit.
const (
	yandexHello    = "options"
	yandexFinalize = "eou"
	yandexBye      = "end"
)

const (
	// yandexSession is the age after which a new session replaces a session. SpeechKit ends a session
	// after 5 minutes of audio (yandex.cloud/en/docs/speechkit/stt/streaming).
	yandexSession = 4 * time.Minute
	// yandexReplay is the most audio that is sent again in a new session.
	yandexReplay = 3 * time.Second
	// yandexStart is a field that the transport adds to each received message: the audio position in
	// milliseconds at the start of the session.
	yandexStart protowire.Number = 1000
)

// A yandexTransport is a transport over gRPC. It replaces an old session after an answer to Finalize,
// or while nobody speaks. The new session receives the newest audio since the last Finalize again.
type yandexTransport struct {
	open    func(ctx context.Context) (*grpcstream.Stream, error)
	options []byte // first message of a session
	rate    int

	call   atomic.Pointer[grpcstream.Stream]
	life   context.Context //nolint:containedctx // ends when the transport is closed
	cancel context.CancelFunc

	mu       sync.Mutex // guards the fields below and the sending of messages
	began    time.Time  // start time of the session
	start    int        // audio position of the start of the session, in bytes
	position int        // bytes of audio that the stream sent
	asked    int        // Finalizes without an answer
	recent   tail       // newest audio since the last Finalize, at most yandexReplay
}

// send implements transport.
func (y *yandexTransport) send(m message, by time.Time) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	call, limit := y.call.Load(), time.Until(by)
	switch m.kind {
	case websocket.BinaryMessage:
		y.position += len(m.body)
		y.recent.add(m.body)
		return call.Send(yandexChunk(m.body), limit)
	case websocket.PingMessage:
		return nil // HTTP/2 sends its own pings
	}
	switch string(m.body) {
	case yandexHello:
		y.began = time.Now()
		return call.Send(y.options, limit)
	case yandexFinalize:
		y.asked++
		y.recent.clear()
		return call.Send(yandexEOU(), limit)
	default:
		call.CloseSend()
		return nil
	}
}

// receive implements transport.
func (y *yandexTransport) receive() ([]byte, error) {
	b, err := y.call.Load().Receive()
	if err == io.EOF { //nolint:errorlint // as returned
		return nil, io.ErrUnexpectedEOF // the provider ended the stream
	}
	if err != nil {
		return nil, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	b = appendVarint(b, yandexStart, uint64(y.start/2*1000/y.rate)) //nolint:gosec // not negative
	m, err := parseYandex(b)
	if err != nil {
		return b, nil
	}
	if m.event == yandexEOUUpdate {
		y.asked = max(0, y.asked-1)
	}
	quiet := m.event == yandexEOUUpdate || m.event == yandexPartial && m.result.Text == ""
	if quiet && y.asked == 0 && time.Since(y.began) > yandexSession {
		return b, y.renew()
	}
	return b, nil
}

// renew replaces the session. The caller holds mu.
func (y *yandexTransport) renew() error {
	ctx, cancel := context.WithTimeout(y.life, writeLimit)
	defer cancel()
	next, err := y.open(ctx)
	if err != nil {
		return err
	}
	old := y.call.Swap(next)
	_ = old.Close()          // Close never fails
	if y.life.Err() != nil { // close may have missed the new session
		_ = next.Close() // Close never fails
	}
	recent := y.recent.newest()
	y.began, y.start = time.Now(), y.position-len(recent)
	if err := next.Send(y.options, writeLimit); err != nil || len(recent) == 0 {
		return err
	}
	return next.Send(yandexChunk(recent), writeLimit)
}

// hurry implements transport. It closes the connection at once, because a stream that ends needs nothing more.
func (y *yandexTransport) hurry(time.Time) { y.close() }

// close implements transport.
func (y *yandexTransport) close() {
	y.cancel()
	_ = y.call.Load().Close() // Close never fails
}
