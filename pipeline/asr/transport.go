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
	// hurry bounds a send that is in progress, because the stream ends.
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

func (s socket) hurry(by time.Time) { _ = s.NetConn().SetWriteDeadline(by) } // it may be closed already

func (s socket) close() { _ = s.Close() } // only the first call matters
