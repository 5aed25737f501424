package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
)

// Listen answers malformed HTTP in the API's error format, because net/http would write plain
// text before it calls any handler. It also bounds the kernel's send buffer, so that
// WithWriteDeadline notices slow readers.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // on failure the kernel's default stays
	}
	return conn{c}, nil
}

type conn struct{ net.Conn }

// rejection matches what net/http writes to malformed requests before it closes the connection.
// Responses of handlers have further headers.
var rejection = regexp.MustCompile(
	`^HTTP/1\.1 ([45]\d\d) [^\r\n]*\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n([^\r\n]*)$`,
)

// Write implements net.Conn.
func (c conn) Write(b []byte) (int, error) {
	if len(b) > 512 || !mayBeRejection(b) {
		return c.Conn.Write(b)
	}
	m := rejection.FindSubmatch(b)
	if m == nil {
		return c.Conn.Write(b)
	}
	status, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return c.Conn.Write(b)
	}
	body, err := json.Marshal(response.Plain(status, string(m[2])))
	if err != nil {
		return c.Conn.Write(b)
	}
	_, err = fmt.Fprintf(
		c.Conn,
		"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nX-Request-Id: %s\r\nCache-Control: no-store\r\n"+
			"Content-Length: %d\r\nConnection: close\r\n\r\n%s",
		status,
		http.StatusText(status),
		control.NewID("req_", time.Now()),
		len(body),
		body,
	)
	return len(b), err
}

func mayBeRejection(b []byte) bool {
	return len(b) > 10 && string(b[:9]) == "HTTP/1.1 " && (b[9] == '4' || b[9] == '5')
}

// ReadFrom lets net/http use sendfile.
func (c conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// CloseWrite delivers the last bytes before the connection closes.
func (c conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
