package endpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
)

var errNoCertificate = errors.New("listen for sip over TLS: no certificate")

// TLS holds the TLS settings.
type TLS struct {
	// Listen is the TLS address, such as "127.0.0.1:5061". Empty means that peers
	// cannot connect to us; we still connect to them.
	Listen string
	// Certificate is required to listen, and sent to peers that ask for one.
	Certificate *tls.Certificate
	// Roots verify the certificates of peers; nil uses the system's.
	Roots *x509.CertPool
}

// SetCertificates replaces the certificate and the roots for new connections;
// open connections stay. It ignores s.Listen.
func (e *Endpoint) SetCertificates(s TLS) error {
	if e.TLS.Listen != "" && s.Certificate == nil {
		return errNoCertificate
	}
	e.tls.settings.Store(&s)
	return nil
}

func (s *TLS) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: s.certificates()}
}

// client returns the configuration for a peer that must prove name (RFC 5922
// section 4).
func (s *TLS) client(name string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name, RootCAs: s.Roots, Certificates: s.certificates()}
}

func (s *TLS) certificates() []tls.Certificate {
	if s.Certificate == nil {
		return nil
	}
	return []tls.Certificate{*s.Certificate}
}

// A tlsListener gives the library all TLS connections: those that peers open,
// and those that tlsConns dials, because the library cannot check the name that a
// peer must prove.
type tlsListener struct {
	addr   net.Addr
	inner  net.Listener // nil if the endpoint does not listen for TLS
	in     chan acceptedConn
	closed chan struct{}
	close  sync.Once

	last chan struct{} // closed when the library has registered the last accepted connection; owned by Accept
}

// An acceptedConn is a connection, and a channel that closes when the library has
// registered it.
type acceptedConn struct {
	conn       net.Conn
	registered chan struct{}
}

func newTLSListener(addr net.Addr, inner net.Listener) *tlsListener {
	return &tlsListener{addr: addr, inner: inner, in: make(chan acceptedConn), closed: make(chan struct{})}
}

func (l *tlsListener) listen() {
	for {
		conn, err := l.inner.Accept()
		if err != nil {
			return
		}
		if l.add(context.Background(), conn) != nil {
			_ = conn.Close()
			return
		}
	}
}

// add returns once the library has registered a connection.
func (l *tlsListener) add(ctx context.Context, conn net.Conn) error {
	a := acceptedConn{conn, make(chan struct{})}
	select {
	case l.in <- a:
	case <-l.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-a.registered:
		return nil
	case <-l.closed:
		return ErrClosed
	}
}

// Accept implements net.Listener. The library has registered a connection when it
// asks for the next.
func (l *tlsListener) Accept() (net.Conn, error) {
	if l.last != nil {
		close(l.last)
		l.last = nil
	}
	select {
	case a := <-l.in:
		l.last = a.registered
		return a.conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *tlsListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	if l.inner == nil {
		return nil
	}
	return l.inner.Close()
}

func (l *tlsListener) Addr() net.Addr { return l.addr }
