package api

import (
	"net/http"
	"time"
)

// An answer goes out in pieces, each of which must be taken within so long. So a
// reader that is slow, or a stream that seldom has anything to say, may take as
// long as it likes; one that takes nothing any more loses its connection. A kernel
// wakes who writes when a third of its buffer is free again: left to itself it lets
// that grow to megabytes, which a slow reader does not take in so long.
const (
	takenWithin = 30 * time.Second
	pieceSize   = 32 << 10
	unsentMost  = 64 << 10
)

// Patient has answers of h wait so long for who asked, and no longer. It is not for
// what takes connections over.
func Patient(h http.Handler) http.Handler { return waiting(h, takenWithin) }

func waiting(h http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &patient{ResponseWriter: w, control: http.NewResponseController(w), within: within}
		defer p.wait() // for what is written once the handler is done
		h.ServeHTTP(p, r)
	})
}

// A patient writer gives each piece the same time.
type patient struct {
	http.ResponseWriter

	control *http.ResponseController
	within  time.Duration
}

// wait gives what is written next its time. Where the connection knows no
// deadlines it may wait for ever.
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

// FlushError is for http.ResponseController.
func (p *patient) FlushError() error {
	p.wait()
	return p.control.Flush()
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
