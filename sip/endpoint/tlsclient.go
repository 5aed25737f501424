package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/sanitize"
)

// maxNames is the maximum number of addresses in tlsConns.names. If it is reached, a new address
// replaces the oldest.
const maxNames = 4096

// An expectation is the name that a peer must prove.
type expectation struct {
	name string
	at   time.Time // time of the last ExpectName
}

// tlsConns opens TLS connections and listens for them. Call open before use.
type tlsConns struct {
	settings atomic.Pointer[TLS] // settings for new connections
	listener *tlsListener
	layer    *sip.TransportLayer

	mu      sync.Mutex
	names   map[string]expectation   // expected names by address
	opening map[string]chan struct{} // attempts to open a connection by address; each channel is closed when the attempt ends
}

// open creates the listener. It has the address other if s does not listen.
func (t *tlsConns) open(s TLS, other net.Addr, filter *sanitize.Filter) error {
	t.settings.Store(&s)
	t.names, t.opening = map[string]expectation{}, map[string]chan struct{}{}
	if s.Listen == "" {
		t.listener = newTLSListener(other, nil)
		return nil
	}
	if s.Certificate == nil {
		return errNoCertificate
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen for SIP over TLS: %w", err)
	}
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.settings.Load().server(), nil },
	}
	wrap := func(c net.Conn) net.Conn { return tls.Server(c, config) }
	t.listener = newTLSListener(l.Addr(), sanitize.NewListener(l, filter, wrap))
	return nil
}

func (t *tlsConns) addr() netip.AddrPort {
	if a, ok := t.listener.addr.(*net.TCPAddr); ok && t.listener.inner != nil {
		return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	return netip.AddrPort{}
}

// ExpectName requires a TLS peer at addr to prove name. Call it before a request
// is sent there. One address may have several names. A request outside a dialog
// then uses only a connection that proves the host of its Request-URI; a request
// within a dialog uses any open connection, since it belongs to a call that
// started there. An address has one connection at a time; requests that need
// another name fail while it is open.
func (e *Endpoint) ExpectName(addr, name string) { e.tls.expectName(addr, name) }

// ForgetNames removes names that were last expected before since, except for the
// addresses in keep.
func (e *Endpoint) ForgetNames(keep map[string]bool, since time.Time) {
	e.tls.forgetNames(keep, since)
}

func (t *tlsConns) expectName(addr, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.names[addr]; !ok && len(t.names) >= maxNames {
		oldest := ""
		for other, x := range t.names {
			if oldest == "" || x.at.Before(t.names[oldest].at) {
				oldest = other
			}
		}
		delete(t.names, oldest)
	}
	t.names[addr] = expectation{name, time.Now()}
}

func (t *tlsConns) forgetNames(keep map[string]bool, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for addr, x := range t.names {
		if !keep[addr] && x.at.Before(since) {
			delete(t.names, addr)
		}
	}
}

// nameToProve returns the name that the connection of a request must prove, or ""
// within a dialog.
func nameToProve(req *sip.Request) string {
	if to := req.To(); to != nil {
		if tag, ok := to.Params.Get("tag"); ok && tag != "" {
			return ""
		}
	}
	return strings.Trim(req.Recipient.Host, "[]")
}

// errUnproven is returned when a connection proves another name.
var errUnproven = errors.New("the certificate of the open connection does not name")

// checkName returns an error if a TLS connection does not prove name. Connections
// that peers opened prove no name. An empty name needs no proof.
func checkName(conn sip.Connection, name string) error {
	if name == "" {
		return nil
	}
	if tcp, ok := conn.(*sip.TCPConnection); ok {
		if c, ok := tcp.Conn.(*tls.Conn); ok {
			if certs := c.ConnectionState().PeerCertificates; len(certs) > 0 && certs[0].VerifyHostname(name) == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("%w %s", errUnproven, name)
}

// connect ensures that a TLS connection to addr is open and proves name, if name
// is not empty. Concurrent callers for one address wait for the first.
func (t *tlsConns) connect(ctx context.Context, addr, name string) error {
	for {
		if conn, err := t.layer.GetConnection("tls", addr); err == nil {
			err = checkName(conn, name)
			_, _ = conn.TryClose() // the caller looks the connection up again
			if err != nil {
				return fmt.Errorf("connect to %s over TLS: %w", addr, err)
			}
			return nil
		}
		t.mu.Lock()
		opening, inProgress := t.opening[addr]
		x, expected := t.names[addr]
		if !inProgress {
			opening = make(chan struct{})
			t.opening[addr] = opening
		}
		t.mu.Unlock()
		if !inProgress {
			err := errors.New("no name to check the certificate against")
			if expected {
				err = t.dial(ctx, addr, cmp.Or(name, x.name))
			}
			t.mu.Lock()
			delete(t.opening, addr)
			t.mu.Unlock()
			close(opening)
			if err != nil {
				return fmt.Errorf("connect to %s over TLS: %w", addr, err)
			}
			return nil
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *tlsConns) dial(ctx context.Context, addr, name string) error {
	d := tls.Dialer{Config: t.settings.Load().client(name)}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if err := t.listener.add(ctx, conn); err != nil {
		_ = conn.Close()
		return err
	}
	return nil
}
