package guard

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	perPeer   = 20
	perServer = 1000
	firstIn   = 5 * time.Second   // for the first whole header of a connection
	wholeIn   = 10 * time.Second  // for a message that has begun
	idleFor   = 120 * time.Second // between messages

	// acceptFirst is how long nothing is accepted after that has failed; it
	// doubles, up to acceptLast.
	acceptFirst = 5 * time.Millisecond
	acceptLast  = time.Second
)

// A Listener accepts so many connections at once, and few from one peer, whose
// IPv6 addresses count as their /64. It has those closed that fall silent, that
// drip, or send what a Filter would not take as a datagram. Those over the
// bounds are closed at once.
type Listener struct {
	net.Listener

	filter *Filter
	wrap   func(net.Conn) net.Conn
	quit   chan struct{}
	close  func() error
	mu     sync.Mutex
	peers  map[netip.Addr]int // by source
	all    int
}

// NewListener guards l. What comes in is counted by f. wrap is how SIP is read
// from a connection, as by tls.Server; nil is as it is.
func NewListener(l net.Listener, f *Filter, wrap func(net.Conn) net.Conn) *Listener {
	if wrap == nil {
		wrap = func(c net.Conn) net.Conn { return c }
	}
	quit := make(chan struct{})
	return &Listener{
		Listener: l, filter: f, wrap: wrap, peers: map[netip.Addr]int{}, quit: quit,
		close: sync.OnceValue(func() error { close(quit); return l.Close() }),
	}
}

// Accept implements net.Listener. It fails only once the listener is closed: a
// process that is out of files for a moment listens on when it has some again.
func (l *Listener) Accept() (net.Conn, error) {
	wait := acceptFirst
	for {
		c, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil {
			l.filter.unaccepted.Add(1)
			if !l.pause(wait) {
				return nil, net.ErrClosed
			}
			wait = min(2*wait, acceptLast)
			continue
		}
		wait = acceptFirst
		var peer netip.Addr
		if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
			peer = a.AddrPort().Addr().Unmap()
		}
		if !l.enter(peer) {
			_ = c.Close()
			continue
		}
		return &conn{
			Conn: l.wrap(c), filter: l.filter, peer: peer, since: time.Now(),
			leave: sync.OnceFunc(func() { l.leave(peer) }),
		}, nil
	}
}

// pause is false where the listener is closed within d.
func (l *Listener) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.quit:
		return false
	}
}

// Close implements net.Listener. It may be called twice.
func (l *Listener) Close() error { return l.close() }

func (l *Listener) enter(peer netip.Addr) bool {
	peer = source(peer)
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
	peer = source(peer)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// A conn is closed by its reader when it is silent for too long, or speaks out
// of bounds. Only one goroutine reads.
type conn struct {
	net.Conn

	filter *Filter
	peer   netip.Addr
	leave  func()
	since  time.Time // of the connection, and then of the message that has begun
	spoke  bool      // a whole header has come
	scan   scanner
}

// deadline is when the connection is closed where nothing comes until then.
func (c *conn) deadline(now time.Time) time.Time {
	switch {
	case !c.spoke:
		return c.since.Add(firstIn)
	case !c.scan.idle():
		return c.since.Add(wholeIn)
	default:
		return now.Add(idleFor)
	}
}

// Read implements net.Conn. What is out of bounds reads as the end of the
// stream, which the library closes without a word.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(c.deadline(time.Now())); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	idle := c.scan.idle()
	heads, bad := c.scan.scan(b[:n])
	if bad != nil {
		c.filter.dropped.Add(1)
		return 0, io.EOF
	}
	for range heads {
		if !c.filter.take(c.peer) {
			return 0, io.EOF
		}
	}
	if c.spoke = c.spoke || heads > 0; c.spoke && (idle || heads > 0) {
		c.since = time.Now()
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}
