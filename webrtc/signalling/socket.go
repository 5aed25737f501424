package signalling

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/gate"
	"github.com/parley-voice/parley/webrtc/leg"
)

const (
	longestMessage = 64 << 10 // bytes
	mostMessages   = 1000     // of one socket
	pingEvery      = 10 * time.Second
	deafAfter      = 25 * time.Second // without a pong
	writeWithin    = 5 * time.Second
)

// A conn is one socket of a browser.
type conn struct {
	ws     *websocket.Conn
	server *Server
	from   netip.Addr // the network that it is of
	write  sync.Mutex // held by who writes
	once   sync.Once
	done   chan struct{} // closed when it is to end
	secret string        // that the browser was told on it
}

// upgrader lets pages of any origin in: the token is what lets in, and no cookie.
func upgrader() *websocket.Upgrader {
	return &websocket.Upgrader{
		ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10, HandshakeTimeout: writeWithin,
		CheckOrigin: func(*http.Request) bool { return true },
	}
}

// ServeHTTP serves GET /rtc: a socket, until it is closed.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v := r.URL.Query().Get("v"); v != "" && v != "1" {
		http.Error(w, "v: accepted: 1", http.StatusBadRequest)
		return
	}
	ws, err := upgrader().Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader answered
	}
	at, _ := netip.ParseAddrPort(r.RemoteAddr) // none: those are taken for one
	c := &conn{ws: ws, server: s, from: gate.Network(at.Addr()), done: make(chan struct{})}
	if !s.admit(c) {
		c.refuse(errClosed)
		return
	}
	defer s.left(c)
	defer c.close()
	if err := c.serve(context.WithoutCancel(r.Context())); err != nil {
		c.refuse(told(err))
	}
}

// serve returns an error that the browser is to be told still.
func (c *conn) serve(ctx context.Context) error {
	c.ws.SetReadLimit(longestMessage)
	_ = c.ws.SetReadDeadline(time.Now().Add(c.server.joinWithin())) // a read after it fails
	first, err := c.read()
	if err != nil {
		return err
	}
	session, err := c.join(ctx, first)
	if err != nil {
		if first.Type == "join" {
			c.server.log().InfoContext(ctx, "a web call was not joined", "err", err)
		}
		return err
	}
	defer session.detach(c)
	var writing sync.WaitGroup
	writing.Go(func() { c.tell(session) })
	defer writing.Wait()
	defer c.close()
	c.refuse(told(c.listen(ctx, session))) // while there is a socket
	return nil
}

// listen does what the browser asks for until the socket ends, and says why.
func (c *conn) listen(ctx context.Context, session *Session) error {
	settle := sync.OnceFunc(func() { c.server.settle(session, c) })
	_ = c.ws.SetReadDeadline(time.Now().Add(deafAfter)) // a read after it fails
	c.ws.SetPongHandler(func(string) error { settle(); return c.ws.SetReadDeadline(time.Now().Add(deafAfter)) })
	for range mostMessages {
		r, err := c.read()
		if err != nil {
			return err
		}
		settle()
		err = c.do(ctx, session, r)
		if err != nil && !errors.Is(err, leg.ErrOver) { // why the call is over is told in its time
			return err
		}
	}
	return &RefusedError{TooMany, "too many messages; join again"}
}

// errGone: there is nobody to tell.
var errGone = &RefusedError{}

func (c *conn) read() (request, error) {
	var r request
	kind, text, err := c.ws.ReadMessage()
	if err != nil {
		if late, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); ok && late.Timeout() {
			return r, &RefusedError{JoinTimeout, "nothing was heard for too long"}
		}
		return r, errGone
	}
	if kind != websocket.TextMessage || json.Unmarshal(text, &r) != nil {
		return r, &RefusedError{BadMessage, "a message is not a JSON object in text"}
	}
	return r, nil
}

// join lets the browser in by its first message.
func (c *conn) join(ctx context.Context, r request) (*Session, error) {
	if r.Type != "join" {
		return nil, &RefusedError{BadMessage, "the first message is not a join"}
	}
	if r.Resume != "" {
		session, answer, err := c.server.resume(ctx, r, c)
		if err == nil {
			c.send(c.answer(session, answer))
		}
		return session, err
	}
	session, answer, err := c.server.begin(ctx, r, c)
	if err != nil {
		return nil, err
	}
	session.attach(c)
	c.send(c.answer(session, answer))
	return session, nil
}

func (c *conn) answer(session *Session, sdp string) answerMessage {
	return answerMessage{"answer", sdp, session.CallID, c.secret, session.credentials}
}

// do does what a browser that joined asks for.
func (c *conn) do(ctx context.Context, session *Session, r request) error {
	switch r.Type {
	case "candidate":
		candidate, err := r.candidate()
		if err != nil {
			return &RefusedError{BadMessage, "candidate: accepted: an RTCIceCandidateInit, or null"}
		}
		return session.Leg.Candidate(candidate)
	case "restart":
		answer, err := session.Leg.Restart(ctx, r.SDP)
		if err != nil {
			return err
		}
		c.send(c.answer(session, answer)) // on this socket or none: the next has another connection
		return nil
	case "bye":
		return session.Leg.Hangup(media.RemoteHangup) // the call's end is told in its time
	default:
		return &RefusedError{BadMessage, "type: accepted: join, candidate, restart, bye"}
	}
}

// tell sends what the session has to tell, and pings, until the socket ends.
func (c *conn) tell(session *Session) {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		for {
			m, ok, last := session.next()
			if ok && !c.send(m.body) {
				session.unsent(m)
				return
			}
			if last {
				c.finish(websocket.CloseNormalClosure, "")
				return
			}
			if !ok {
				break
			}
		}
		select {
		case <-c.done:
			return
		case <-session.wake:
		case <-ping.C:
			if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin)) != nil {
				c.close()
				return
			}
		}
	}
}

// send is false where the socket is of no more use.
func (c *conn) send(v any) bool {
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.ws.SetWriteDeadline(time.Now().Add(writeWithin)) // a write after it fails
	if err := c.ws.WriteJSON(v); err != nil {
		c.close()
		return false
	}
	return true
}

// refuse tells why the socket ends, and ends it.
func (c *conn) refuse(r *RefusedError) {
	if r != errGone && c.send(errorMessage{"error", r.Code, r.Message}) {
		c.finish(websocket.ClosePolicyViolation, string(r.Code))
	}
	c.close()
}

func (c *conn) finish(code int, why string) {
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(writeWithin)) // it may be gone
	c.close()
}

// close ends the socket: who reads or writes it fails.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.ws.Close()
	})
}
