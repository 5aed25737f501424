package gate

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// acceptFirst is how long nothing is accepted after that has failed; it
	// doubles, up to acceptLast.
	acceptFirst = 5 * time.Millisecond
	acceptLast  = time.Second
)

// A Listener accepts those connections that its gate lets in. Those over its
// bounds are closed at once.
type Listener struct {
	net.Listener
	*Gate

	failed func()
	quit   chan struct{}
	close  func() error
}

// NewListener guards l. failed, where set, is told of each time that no connection
// could be accepted.
func NewListener(l net.Listener, g *Gate, failed func()) *Listener {
	if failed == nil {
		failed = func() {}
	}
	quit := make(chan struct{})
	return &Listener{l, g, failed, quit, sync.OnceValue(func() error { close(quit); return l.Close() })}
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
			l.failed()
			if !l.pause(wait) {
				return nil, net.ErrClosed
			}
			wait = min(2*wait, acceptLast)
			continue
		}
		wait = acceptFirst
		var peer netip.Addr
		if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
			peer = a.AddrPort().Addr()
		}
		if !l.Enter(peer) {
			_ = c.Close()
			continue
		}
		return &conn{c, sync.OnceFunc(func() { l.Leave(peer) })}, nil
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

// A conn leaves when it is closed.
type conn struct {
	net.Conn

	leave func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}
