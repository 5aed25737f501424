package api

import (
	"net/http"
	"time"
)

// Responses are written in pieces, each with a deadline of its own. A handler may set a deadline for all of them. Slow readers and quiet
// streams may take any time, but a client that reads nothing loses its connection. The kernel
// wakes a writer when a third of its buffer is free; with the default buffer of megabytes a
// slow reader would miss the deadline.
const (
	writeTimeout = 30 * time.Second
	pieceSize    = 32 << 10
	sendBuffer   = 64 << 10
)

// WithWriteDeadline gives each write of h a deadline of 30 s. It must not wrap handlers that hijack
// connections.
func WithWriteDeadline(h http.Handler) http.Handler { return withDeadline(h, writeTimeout) }

func withDeadline(h http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), within: within}
		defer p.extend() // for writes after the handler has returned
		h.ServeHTTP(p, r)
	})
}

// A deadlineWriter renews the deadline before each piece.
type deadlineWriter struct {
	http.ResponseWriter

	control *http.ResponseController
	within  time.Duration
	last    time.Time // deadline of the whole response; zero for none
}

// extend sets the deadline of the next write, if the connection supports it.
func (p *deadlineWriter) extend() {
	next := time.Now().Add(p.within)
	if !p.last.IsZero() && next.After(p.last) {
		next = p.last
	}
	_ = p.control.SetWriteDeadline(next)
}

// SetWriteDeadline supports http.ResponseController: it sets the deadline of the whole response. No write may run meanwhile.
func (p *deadlineWriter) SetWriteDeadline(last time.Time) error {
	p.last = last
	return p.control.SetWriteDeadline(last)
}

// Write implements http.ResponseWriter.
func (p *deadlineWriter) Write(b []byte) (n int, err error) {
	for {
		p.extend()
		wrote, err := p.ResponseWriter.Write(b[n:min(len(b), n+pieceSize)])
		if n += wrote; err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError supports http.ResponseController.
func (p *deadlineWriter) FlushError() error {
	p.extend()
	return p.control.Flush()
}

// Unwrap supports http.ResponseController.
func (p *deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
