package asr

import (
	"time"

	"github.com/gorilla/websocket"
)

// A transport is the connection of a stream. send and receive belong to one goroutine each;
// hurry and close may be called by any, several times.
type transport interface {
	send(m message, by time.Time) error
	receive() ([]byte, error)
	// hurry bounds a send that is in progress when the stream ends.
	hurry(by time.Time)
	// close ends receive.
	close()
}

// A socket is the transport over a WebSocket.
type socket struct{ *websocket.Conn }

func (s socket) send(m message, by time.Time) error {
	if err := s.SetWriteDeadline(by); err != nil {
		return err
	}
	return s.WriteMessage(m.kind, m.body)
}

func (s socket) receive() ([]byte, error) {
	_, b, err := s.ReadMessage()
	return b, err
}

func (s socket) hurry(by time.Time) { _ = s.NetConn().SetWriteDeadline(by) } // the connection may be closed already

func (s socket) close() { _ = s.Close() } // only the first call has an effect

// A tail keeps the newest size bytes of audio.
type tail struct {
	size int
	b    []byte // up to twice size bytes, so that the content is rarely moved
}

func (t *tail) add(sound []byte) {
	if t.b = append(t.b, sound...); len(t.b) >= 2*t.size {
		t.b = append(t.b[:0], t.newest()...)
	}
}

func (t *tail) clear() { t.b = t.b[:0] }

// newest returns the audio, which is valid until the next call.
func (t *tail) newest() []byte { return t.b[max(0, len(t.b)-t.size):] }
