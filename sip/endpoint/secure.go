package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"
)

// maxNames bounds the addresses of which names are expected.
const maxNames = 4096

// An expectation is the name that a peer must prove.
type expectation struct {
	name string
	at   time.Time // it was last expected
}

// Expect has a peer at addr prove the name given, over TLS. It must be called
// before a request is sent there. Where several names stand for one address, a
// request outside a dialog goes over a connection only that proves the host of
// its Request-URI, and one within a dialog over whichever is open: it belongs
// to a call that was begun there. There is one connection to an address at a
// time; while it does not prove a name, requests for that one fail.
func (e *Endpoint) Expect(addr, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.names[addr]; !ok && len(e.names) >= maxNames {
		first := ""
		for other, x := range e.names {
			if first == "" || x.at.Before(e.names[first].at) {
				first = other
			}
		}
		delete(e.names, first)
	}
	e.names[addr] = expectation{name, time.Now()}
}

// Unexpect forgets the names that were not expected since then, but for those
// of the addresses given.
func (e *Endpoint) Unexpect(but map[string]bool, since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for addr, x := range e.names {
		if !but[addr] && x.at.Before(since) {
			delete(e.names, addr)
		}
	}
}

// proof is the name that a connection must prove for a request to go over it:
// none within a dialog.
func proof(req *sip.Request) string {
	if to := req.To(); to != nil {
		if tag, ok := to.Params.Get("tag"); ok && tag != "" {
			return ""
		}
	}
	return strings.Trim(req.Recipient.Host, "[]")
}

// errUnproven is why a connection is not used for a request.
var errUnproven = errors.New("the open connection proves another name than")

// proves says why a connection over TLS must not be used for a request to the
// name given. Those that peers opened prove nothing.
func proves(conn sip.Connection, name string) error {
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

// secure has a connection over TLS to addr ready that proves name, or any where
// it is empty. Those who want the same one at the same time wait for one of
// them to open it.
func (e *Endpoint) secure(ctx context.Context, addr, name string) error {
	for {
		if conn, err := e.ua.TransportLayer().GetConnection("tls", addr); err == nil {
			err = proves(conn, name)
			_, _ = conn.TryClose() // it is looked up again
			if err != nil {
				return fmt.Errorf("connect to %s over TLS: %w", addr, err)
			}
			return nil
		}
		e.mu.Lock()
		opening, others := e.opening[addr]
		x, expected := e.names[addr]
		if !others {
			opening = make(chan struct{})
			e.opening[addr] = opening
		}
		e.mu.Unlock()
		if !others {
			err := errors.New("no name to check its certificate by")
			if expected {
				err = e.openTLS(ctx, addr, cmp.Or(name, x.name))
			}
			e.mu.Lock()
			delete(e.opening, addr)
			e.mu.Unlock()
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

func (e *Endpoint) openTLS(ctx context.Context, addr, name string) error {
	d := tls.Dialer{Config: e.Secure.client(name)}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	if err := e.entrance.hand(ctx, conn); err != nil {
		_ = conn.Close()
		return err
	}
	return nil
}
