package endpoint

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"
)

const (
	// connectFor is how long it may take to find a peer and to connect to it.
	connectFor = 4 * time.Second
	// takeFor is how long a peer may take to read a message over TCP.
	takeFor = 4 * time.Second
)

// Until returns a context that ends with ctx, and when stop is closed too.
// cancel ends it, and must be called.
func Until(ctx context.Context, stop <-chan struct{}) (until context.Context, cancel func()) {
	ctx, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-stop:
			end()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		end()
		watch.Wait()
	}
}

// bounded returns the context in which a message is sent: it ends with ctx,
// after connectFor, and when Close waits no longer.
func (e *Endpoint) bounded(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithTimeout(ctx, connectFor)
	ctx, leave := Until(ctx, e.abandoned)
	return ctx, func() {
		leave()
		end()
	}
}

// connect has a connection ready for a signed request, and keeps it until
// release. It returns as soon as ctx ends, with its error. Where release does
// not come within takeFor, the peer reads nothing, and the connection is
// closed. A request over UDP needs none.
func (e *Endpoint) connect(ctx context.Context, req *sip.Request) (release func(), err error) {
	name := ""
	switch req.Transport() {
	case "UDP":
		return func() {}, nil
	case "TLS":
		name = proof(req)
		if err := e.secure(ctx, req.Destination(), name); err != nil {
			return nil, err
		}
	}
	for {
		conn, err := e.reach(ctx, req.Clone())
		var slow net.Error
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_, _ = conn.TryClose()
			}
			return nil, ctx.Err()
		case err == nil && proves(conn, name) != nil: // it is another by now
			_, _ = conn.TryClose()
			return nil, proves(conn, name)
		case err == nil:
			late := time.AfterFunc(takeFor, func() { _ = conn.Close() })
			return func() {
				late.Stop()
				_, _ = conn.TryClose()
			}, nil
		case errors.Is(err, context.Canceled), errors.As(err, &slow) && slow.Timeout():
			// The library connects once for all who wait for the same peer, for
			// as long as the first of them does. That one waits no longer.
		default:
			return nil, err
		}
	}
}

// reach finds or opens the connection for a request, which it may change.
func (e *Endpoint) reach(ctx context.Context, req *sip.Request) (sip.Connection, error) {
	var conn sip.Connection
	var err error
	reached := make(chan struct{})
	began := e.Go(func() {
		if conn, err = e.connection(ctx, req); err != nil {
			conn = nil
		}
		select {
		case reached <- struct{}{}:
		case <-ctx.Done(): // nobody waits
			if conn != nil {
				_, _ = conn.TryClose()
			}
		}
	})
	if !began {
		return nil, ErrClosed
	}
	select {
	case <-reached:
		return conn, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *Endpoint) connection(ctx context.Context, req *sip.Request) (sip.Connection, error) {
	e.sending.RLock()
	defer e.sending.RUnlock()
	if e.deaf.Load() {
		return nil, ErrClosed
	}
	return e.ua.TransportLayer().ClientRequestConnection(ctx, req)
}
