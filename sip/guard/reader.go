package guard

import (
	"net"
	"net/netip"
	"time"
)

// maxSources is how many addresses the library may learn from one reader.
const maxSources = 4096

// settleFor is how long the library has to be done with what a reader took.
const settleFor = 100 * time.Millisecond

// A Reader has the library read a socket for as long as it has met few
// addresses. The library remembers each address that it reads from until its
// reader ends, whoever made it up: so the reader ends, after another has begun,
// and with it what it remembers. No datagram is lost.
type Reader struct {
	net.PacketConn

	next  func()          // has the library read on, and returns once it does
	ready func()          // is told of each read
	quit  <-chan struct{} // closed when the socket will be
	met   map[netip.AddrPort]struct{}
}

// NewReader reads c. next must have the library read it by another reader, and
// return when it does, which is when ready is called. quit is closed when the
// socket will be.
func NewReader(c net.PacketConn, ready, next func(), quit <-chan struct{}) *Reader {
	return &Reader{c, next, ready, quit, map[netip.AddrPort]struct{}{}}
}

// ReadFrom implements net.PacketConn.
func (r *Reader) ReadFrom(b []byte) (int, net.Addr, error) {
	r.ready()
	if len(r.met) >= maxSources {
		r.next()
		settle := time.NewTimer(settleFor)
		defer settle.Stop()
		select {
		case <-settle.C:
		case <-r.quit:
		}
		return 0, nil, net.ErrClosed
	}
	n, from, err := r.PacketConn.ReadFrom(b)
	if a, ok := from.(*net.UDPAddr); ok && err == nil {
		r.met[a.AddrPort()] = struct{}{}
	}
	return n, from, err
}
