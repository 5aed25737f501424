package signaling

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
	"github.com/parley-voice/parley/media/connlimit"
	"github.com/parley-voice/parley/webrtc/leg"
)

const (
	maxMessageLen = 64 << 10 // bytes
	maxMessages   = 1000     // maximum number of messages from one socket
	pingEvery     = 10 * time.Second
	pongTimeout   = 25 * time.Second
	writeTimeout  = 5 * time.Second
	closeTimeout  = time.Second // maximum wait for the browser's close frame
)

type conn struct {
	ws      *websocket.Conn
	server  *Server
	network netip.Addr
	write   sync.Mutex // held while a message is written
	once    sync.Once
	done    chan struct{} // closed to end the socket
	secret  string        // resume secret sent on this socket
}

// upgrader accepts pages of any origin: access needs a token, not a cookie.
func upgrader() *websocket.Upgrader {
	return &websocket.Upgrader{
		ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10, HandshakeTimeout: writeTimeout,
		CheckOrigin: func(*http.Request) bool { return true },
	}
}

// ServeHTTP serves GET /rtc. It returns when the socket has closed.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if v := r.URL.Query().Get("v"); v != "" && v != "1" {
		http.Error(w, "query parameter v must be 1", http.StatusBadRequest)
		return
	}
	ws, err := upgrader().Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	at, _ := netip.ParseAddrPort(r.RemoteAddr) // invalid addresses count as one network
	c := &conn{ws: ws, server: s, network: connlimit.Network(at.Addr()), done: make(chan struct{})}
	if !s.admit(c) {
		c.refuse(errClosed)
		return
	}
	defer s.remove(c)
	defer c.close()
	if err := c.serve(context.WithoutCancel(r.Context())); err != nil {
		c.refuse(refusalFor(err))
	}
}

// serve handles the messages of the socket until the socket ends. The caller must send the returned error to the
// browser.
func (c *conn) serve(ctx context.Context) error {
	c.ws.SetReadLimit(maxMessageLen)
	_ = c.ws.SetReadDeadline(time.Now().Add(c.server.joinTimeout())) // a failure shows in the next read
	first, err := c.read()
	if err != nil {
		return err
	}
	session, err := c.join(ctx, first)
	if err != nil {
		if first.Type == "join" {
			c.server.log().InfoContext(ctx, "failed to join web call", "err", err)
		}
		return err
	}
	defer session.detach(c)
	var writing sync.WaitGroup
	writing.Go(func() { c.writeLoop(session) })
	defer writing.Wait()
	defer c.close()
	c.refuse(refusalFor(c.listen(ctx, session))) // has no effect if the socket is closed
	return nil
}

// listen handles messages until the socket ends, and returns the reason.
func (c *conn) listen(ctx context.Context, session *Session) error {
	settle := sync.OnceFunc(func() { c.server.dropPreviousSecret(session, c) })
	_ = c.ws.SetReadDeadline(time.Now().Add(pongTimeout)) // a failure shows in the next read
	c.ws.SetPongHandler(func(string) error { settle(); return c.ws.SetReadDeadline(time.Now().Add(pongTimeout)) })
	for range maxMessages {
		r, err := c.read()
		if err != nil {
			return err
		}
		settle()
		err = c.handle(ctx, session, r)
		if err != nil && !errors.Is(err, leg.ErrEnded) { // Bye sends the reason
			return err
		}
	}
	return &RefusedError{TooMany, "too many messages; join again"}
}

// errGone means that the browser has left.
var errGone = &RefusedError{}

func (c *conn) read() (request, error) {
	var r request
	kind, text, err := c.ws.ReadMessage()
	if err != nil {
		if late, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); ok && late.Timeout() {
			return r, &RefusedError{JoinTimeout, "no message received in time"}
		}
		return r, errGone
	}
	if kind != websocket.TextMessage || json.Unmarshal(text, &r) != nil {
		return r, &RefusedError{BadMessage, "messages must be JSON objects in text frames"}
	}
	return r, nil
}

func (c *conn) join(ctx context.Context, r request) (*Session, error) {
	if r.Type != "join" {
		return nil, &RefusedError{BadMessage, "the first message must be a join"}
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

func (c *conn) handle(ctx context.Context, session *Session, r request) error {
	switch r.Type {
	case "candidate":
		candidate, err := r.candidate()
		if err != nil {
			return &RefusedError{BadMessage, "candidate must be an RTCIceCandidateInit or null"}
		}
		return session.Leg.AddCandidate(candidate)
	case "restart":
		answer, err := session.Leg.AnswerRestart(ctx, r.SDP)
		if err != nil {
			return err
		}
		c.send(c.answer(session, answer)) // not through the queue, because a later socket has another peer connection
		return nil
	case "text":
		text, err := r.words()
		if err != nil {
			return err
		}
		return session.addText(text)
	case "bye":
		return session.Leg.Hangup(media.RemoteHangup) // Bye follows
	default:
		return &RefusedError{BadMessage, "type must be join, candidate, restart, text or bye"}
	}
}

// writeLoop sends queued messages and pings until the socket ends.
func (c *conn) writeLoop(session *Session) {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		for {
			m, ok, last := session.next()
			if ok && !c.send(m.body) {
				session.requeue(m)
				return
			}
			if last {
				c.closeNormally()
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
			if c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)) != nil {
				c.close()
				return
			}
		}
	}
}

// closeNormally closes the socket after the end of the call. It needs listen, which reads the browser's close frame.
func (c *conn) closeNormally() {
	defer c.close()
	if !c.sendClose(websocket.CloseNormalClosure, "") {
		return
	}
	late := time.NewTimer(closeTimeout)
	defer late.Stop()
	select {
	case <-c.done: // listen received the browser's close frame
	case <-late.C:
	}
}

// send returns false if the socket is unusable.
func (c *conn) send(v any) bool {
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.ws.SetWriteDeadline(time.Now().Add(writeTimeout)) // a failure shows in the write
	if err := c.ws.WriteJSON(v); err != nil {
		c.close()
		return false
	}
	return true
}

// refuse sends an error and closes the socket. Only the reading goroutine may call it.
func (c *conn) refuse(r *RefusedError) {
	if r != errGone && c.send(errorMessage{"error", r.Code, r.Message}) && c.sendClose(websocket.ClosePolicyViolation, string(r.Code)) {
		c.discard()
	}
	c.close()
}

// sendClose sends a close frame and reports success. The browser responds with a close frame too (RFC 6455 section
// 5.5.1). The connection must stay open until then: closing with unread bytes resets TCP, and the browser may report a
// lost network instead of the reason.
func (c *conn) sendClose(code int, why string) bool {
	return c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(writeTimeout)) == nil
}

// discard reads and drops messages until the browser has closed the socket, at most for closeTimeout.
func (c *conn) discard() {
	c.ws.SetPongHandler(nil)
	_ = c.ws.SetReadDeadline(time.Now().Add(closeTimeout)) // a failure shows in the next read
	for range maxMessages {
		if _, _, err := c.ws.NextReader(); err != nil {
			return
		}
	}
}

// close ends the socket; pending reads and writes fail.
func (c *conn) close() {
	c.once.Do(func() {
		close(c.done)
		_ = c.ws.Close()
	})
}
