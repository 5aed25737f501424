package asr

import (
	"time"

	"github.com/gorilla/websocket"
)

// A transport is the connection of a stream. Only one goroutine calls send and only one calls
// receive. Any goroutine may call hurry and close, more than once.
type transport interface {
	send(m message, by time.Time) error
	receive() ([]byte, error)
	// hurry sets the deadline of a send in progress. The stream calls it when it ends.
	hurry(by time.Time)
	// close closes the connection and makes receive return.
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
	b    []byte // grows to twice size before old audio is dropped, so that bytes are rarely moved
}

func (t *tail) add(sound []byte) {
	if t.b = append(t.b, sound...); len(t.b) >= 2*t.size {
		t.b = append(t.b[:0], t.newest()...)
	}
}

func (t *tail) clear() { t.b = t.b[:0] }

// newest returns the kept audio. It is valid until the next call of add.
func (t *tail) newest() []byte { return t.b[max(0, len(t.b)-t.size):] }
