package connlimit

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// acceptFirst is the pause after a failed Accept; it doubles up to
	// acceptLast.
	acceptFirst = 5 * time.Millisecond
	acceptLast  = time.Second
)

// A Listener accepts connections within the limits and closes the others at
// once.
type Listener struct {
	net.Listener
	*Limiter

	failed func()
	quit   chan struct{}
	close  func() error
}

// NewListener limits l. failed is called for each failed Accept; nil disables
// it.
func NewListener(l net.Listener, g *Limiter, failed func()) *Listener {
	if failed == nil {
		failed = func() {}
	}
	quit := make(chan struct{})
	return &Listener{l, g, failed, quit, sync.OnceValue(func() error { close(quit); return l.Close() })}
}

// Accept implements net.Listener. It fails only after Close; other errors,
// such as EMFILE, are retried.
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
		if !l.Acquire(peer) {
			_ = c.Close()
			continue
		}
		return &conn{c, sync.OnceFunc(func() { l.Release(peer) })}, nil
	}
}

// pause returns false if the listener is closed within d.
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

type conn struct {
	net.Conn

	release func()
}

func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
