package api

import (
	"net/http"
	"time"
)

// Responses are written in pieces, each with its own deadline. Slow readers and quiet
// streams may take any time; a client that reads nothing loses its connection. The kernel
// wakes a writer when a third of its buffer is free; with the default buffer of megabytes
// a slow reader would miss the deadline.
const (
	takenWithin = 30 * time.Second
	pieceSize   = 32 << 10
	unsentMost  = 64 << 10
)

// Patient gives each write of h this deadline. Not for handlers that hijack connections.
func Patient(h http.Handler) http.Handler { return waiting(h, takenWithin) }

func waiting(h http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &patient{ResponseWriter: w, control: http.NewResponseController(w), within: within}
		defer p.wait() // for writes after the handler returns
		h.ServeHTTP(p, r)
	})
}

// A patient writer renews the deadline before each piece.
type patient struct {
	http.ResponseWriter

	control *http.ResponseController
	within  time.Duration
}

// wait sets the deadline of the next write, if the connection supports it.
func (p *patient) wait() { _ = p.control.SetWriteDeadline(time.Now().Add(p.within)) }

// Write implements http.ResponseWriter.
func (p *patient) Write(b []byte) (n int, err error) {
	for {
		p.wait()
		wrote, err := p.ResponseWriter.Write(b[n:min(len(b), n+pieceSize)])
		if n += wrote; err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError supports http.ResponseController.
func (p *patient) FlushError() error {
	p.wait()
	return p.control.Flush()
}

// Unwrap supports http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
