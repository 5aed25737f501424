package guard

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	perPeer   = 20
	perServer = 1000
	firstIn   = 5 * time.Second   // for the first whole header of a connection
	idleFor   = 120 * time.Second // between reads
)

// A Listener accepts so many connections at once, and few from one peer, and
// has them closed where they fall silent. Those over the bounds are closed at
// once.
type Listener struct {
	net.Listener

	mu    sync.Mutex
	peers map[netip.Addr]int
	all   int
}

// NewListener guards l.
func NewListener(l net.Listener) *Listener {
	return &Listener{Listener: l, peers: map[netip.Addr]int{}}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var peer netip.Addr
		if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
			peer = a.AddrPort().Addr().Unmap()
		}
		if !l.enter(peer) {
			_ = c.Close()
			continue
		}
		return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(peer) }), since: time.Now()}, nil
	}
}

func (l *Listener) enter(peer netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= perServer || l.peers[peer] >= perPeer {
		return false
	}
	l.all++
	l.peers[peer]++
	return true
}

func (l *Listener) leave(peer netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// A conn is closed by its reader when it is silent for too long. Only one
// goroutine reads.
type conn struct {
	net.Conn

	leave func()
	since time.Time
	spoke bool // a whole header has come
	tail  [3]byte
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	deadline := time.Now().Add(idleFor)
	if !c.spoke {
		deadline = c.since.Add(firstIn)
	}
	if err := c.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if !c.spoke && n > 0 {
		seen := append(c.tail[:len(c.tail):len(c.tail)], b[:n]...)
		c.spoke = bytes.Contains(seen, []byte("\r\n\r\n"))
		copy(c.tail[:], seen[len(seen)-len(c.tail):])
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}
