package sanitize

import (
	"net"
	"net/netip"
	"time"
)

// maxSources is the number of source addresses that one reader may pass.
const maxSources = 4096

// settleTime is how long the library may process what it has read.
const settleTime = 100 * time.Millisecond

// A Reader bounds the source addresses that the library remembers. The library
// forgets them only when its reader ends, and senders can forge addresses. So the
// reader ends after maxSources, once another has started. No datagram is lost.
type Reader struct {
	net.PacketConn

	next  func()          // starts the next reader, and returns once that one reads
	ready func()          // called before each read
	quit  <-chan struct{} // closed when the socket is closing
	seen  map[netip.AddrPort]struct{}
}

// NewReader reads c. next must start another reader for c and return once that
// one calls ready. quit closes when the socket is closing.
func NewReader(c net.PacketConn, ready, next func(), quit <-chan struct{}) *Reader {
	return &Reader{c, next, ready, quit, map[netip.AddrPort]struct{}{}}
}

// ReadFrom implements net.PacketConn.
func (r *Reader) ReadFrom(b []byte) (int, net.Addr, error) {
	r.ready()
	if len(r.seen) >= maxSources {
		r.next()
		settle := time.NewTimer(settleTime)
		defer settle.Stop()
		select {
		case <-settle.C:
		case <-r.quit:
		}
		return 0, nil, net.ErrClosed
	}
	n, from, err := r.PacketConn.ReadFrom(b)
	if a, ok := from.(*net.UDPAddr); ok && err == nil {
		r.seen[a.AddrPort()] = struct{}{}
	}
	return n, from, err
}
