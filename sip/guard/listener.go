package guard

import (
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/parley-voice/parley/media/gate"
)

const (
	perPeer   = 20
	perServer = 1000
	firstIn   = 5 * time.Second   // for the first whole header of a connection
	wholeIn   = 10 * time.Second  // for a message that has begun
	idleFor   = 120 * time.Second // between messages
)

// A Listener accepts so many connections at once, and few from one peer, whose
// IPv6 addresses count as their /64. It has those closed that fall silent, that
// drip, or send what a Filter would not take as a datagram. Those over the
// bounds are closed at once.
type Listener struct {
	*gate.Listener

	filter *Filter
	wrap   func(net.Conn) net.Conn
}

// NewListener guards l. What comes in is counted by f. wrap is how SIP is read
// from a connection, as by tls.Server; nil is as it is.
func NewListener(l net.Listener, f *Filter, wrap func(net.Conn) net.Conn) *Listener {
	if wrap == nil {
		wrap = func(c net.Conn) net.Conn { return c }
	}
	g := &gate.Gate{Most: perServer, Each: perPeer}
	return &Listener{gate.NewListener(l, g, func() { f.unaccepted.Add(1) }), f, wrap}
}

// Accept implements net.Listener. It fails only once the listener is closed.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	var peer netip.Addr
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		peer = a.AddrPort().Addr().Unmap()
	}
	return &conn{Conn: l.wrap(c), filter: l.filter, peer: peer, since: time.Now()}, nil
}

// A conn is closed by its reader when it is silent for too long, or speaks out
// of bounds. Only one goroutine reads.
type conn struct {
	net.Conn

	filter *Filter
	peer   netip.Addr
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
