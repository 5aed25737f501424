package fakeprovider

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A Net is an in-memory network with one listener: itself. Its connections are pipes. Unlike sockets, pipes work in a
// synctest bubble.
type Net struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewNet returns a network without connections.
func NewNet() *Net { return &Net{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to the listener.
func (n *Net) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.conns <- far:
		return near, nil
	case <-n.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (n *Net) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *Net) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

// Addr implements net.Listener.
func (n *Net) Addr() net.Addr { return &net.TCPAddr{} }
