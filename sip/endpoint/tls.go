package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
)

// A Secure is how SIP is spoken over TLS.
type Secure struct {
	// Listen is where TLS is listened for: "127.0.0.1:5061". Where it is empty,
	// peers are reached over TLS, but do not reach us.
	Listen string
	// Certificate is ours: needed to listen, and shown to peers that ask.
	Certificate *tls.Certificate
	// Roots are those that peers' certificates are checked against; nil are
	// the system's.
	Roots *x509.CertPool
}

// server is the configuration of a listener.
func (s Secure) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: s.own()}
}

// client is the configuration for a peer that must prove to be name (RFC 5922
// section 4).
func (s Secure) client(name string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name, RootCAs: s.Roots, Certificates: s.own()}
}

func (s Secure) own() []tls.Certificate {
	if s.Certificate == nil {
		return nil
	}
	return []tls.Certificate{*s.Certificate}
}

// An entrance gives the library connections over TLS: those that peers open,
// and those that we open ourselves, for the library cannot be told which name
// a peer must prove.
type entrance struct {
	addr   net.Addr
	inner  net.Listener // guarded; nil where we listen for none
	in     chan entry
	closed chan struct{}
	close  sync.Once

	known chan struct{} // of the connection that the library took last; owned by Accept
}

// An entry is a connection, and what is closed when the library knows it.
type entry struct {
	conn  net.Conn
	known chan struct{}
}

func newEntrance(addr net.Addr, inner net.Listener) *entrance {
	return &entrance{addr: addr, inner: inner, in: make(chan entry), closed: make(chan struct{})}
}

// listen hands in what peers open, until the listener is closed.
func (n *entrance) listen() {
	for {
		conn, err := n.inner.Accept()
		if err != nil {
			return
		}
		if n.hand(context.Background(), conn) != nil {
			_ = conn.Close()
			return
		}
	}
}

// hand returns once the library knows a connection.
func (n *entrance) hand(ctx context.Context, conn net.Conn) error {
	e := entry{conn, make(chan struct{})}
	select {
	case n.in <- e:
	case <-n.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-e.known:
		return nil
	case <-n.closed:
		return ErrClosed
	}
}

// Accept implements net.Listener. The library knows a connection when it asks
// for the next.
func (n *entrance) Accept() (net.Conn, error) {
	if n.known != nil {
		close(n.known)
		n.known = nil
	}
	select {
	case e := <-n.in:
		n.known = e.known
		return e.conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *entrance) Close() error {
	n.close.Do(func() { close(n.closed) })
	if n.inner == nil {
		return nil
	}
	return n.inner.Close()
}

// Addr implements net.Listener.
func (n *entrance) Addr() net.Addr { return n.addr }
