package connlimit

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// acceptFirst is the pause after a failed Accept. Each further failure doubles the pause, up to acceptLast.
	acceptFirst = 5 * time.Millisecond
	acceptLast  = time.Second
)

// Listener accepts connections. It closes a connection at once if a limit is reached.
type Listener struct {
	net.Listener
	*Limiter

	failed func()
	quit   chan struct{}
	close  func() error
}

// NewListener returns a listener that limits the connections of l. It calls failed after each failed Accept; failed
// may be nil.
func NewListener(l net.Listener, g *Limiter, failed func()) *Listener {
	if failed == nil {
		failed = func() {}
	}
	quit := make(chan struct{})
	return &Listener{l, g, failed, quit, sync.OnceValue(func() error { close(quit); return l.Close() })}
}

// Accept implements net.Listener. It returns an error only after Close. After other errors, such as EMFILE, it tries
// again.
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

// pause waits for d. It returns false if the listener is closed meanwhile.
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
