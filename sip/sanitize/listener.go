package sanitize

import (
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/parley-voice/parley/media/connlimit"
)

const (
	maxPerPeer         = 20
	maxConns           = 1000
	firstHeaderTimeout = 5 * time.Second   // time limit of the first complete header of a connection
	messageTimeout     = 10 * time.Second  // time limit of a message that has begun
	idleTimeout        = 120 * time.Second // longest time between messages
)

// A Listener limits the connections, in total and per peer; IPv6 addresses count
// as their /64. It closes connections that are idle, slow, or that send what a
// Filter would drop. Connections above the limits are closed at once.
type Listener struct {
	*connlimit.Listener

	filter *Filter
	wrap   func(net.Conn) net.Conn
}

// NewListener guards l. f counts what is dropped. wrap converts a connection,
// such as tls.Server; nil leaves it as it is.
func NewListener(l net.Listener, f *Filter, wrap func(net.Conn) net.Conn) *Listener {
	if wrap == nil {
		wrap = func(c net.Conn) net.Conn { return c }
	}
	g := &connlimit.Limiter{MaxTotal: maxConns, MaxPerNetwork: maxPerPeer}
	return &Listener{connlimit.NewListener(l, g, func() { f.unaccepted.Add(1) }), f, wrap}
}

// Accept implements net.Listener. It fails only when the listener is closed.
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

// A conn checks what it reads. Only one goroutine may read.
type conn struct {
	net.Conn

	filter    *Filter
	peer      netip.Addr
	since     time.Time // start of the connection or of the current message
	hasHeader bool      // a complete header has arrived
	scan      scanner
}

func (c *conn) deadline(now time.Time) time.Time {
	switch {
	case !c.hasHeader:
		return c.since.Add(firstHeaderTimeout)
	case !c.scan.isIdle():
		return c.since.Add(messageTimeout)
	default:
		return now.Add(idleTimeout)
	}
}

// Read implements net.Conn. It returns io.EOF for invalid data, so that the
// library closes the connection.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(c.deadline(time.Now())); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	idle := c.scan.isIdle()
	heads, bad := c.scan.scan(b[:n])
	// Responses to our requests arrive on a connection that we opened, or from an
	// address that we sent a message to.
	if bad != nil || c.scan.answers > 0 && !c.filter.TrustsHost(c.peer) {
		c.filter.dropped.Add(1)
		return 0, io.EOF
	}
	for range heads {
		if !c.filter.allow(c.peer) {
			return 0, io.EOF
		}
	}
	if c.hasHeader = c.hasHeader || heads > 0; c.hasHeader && (idle || heads > 0) {
		c.since = time.Now()
	}
	return n, err
}
