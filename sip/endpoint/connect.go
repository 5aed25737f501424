package endpoint

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"
)

const (
	// connectTimeout bounds finding a peer and connecting to it.
	connectTimeout = 4 * time.Second
	// writeTimeout is how long a peer may take to read a message over TCP.
	writeTimeout = 4 * time.Second
)

// WithStop returns a context that ends with ctx, or when stop is closed. cancel
// ends it and must be called.
func WithStop(ctx context.Context, stop <-chan struct{}) (stopped context.Context, cancel func()) {
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

// A connector finds or opens the connections for requests. Call init before use.
type connector struct {
	layer     *sip.TransportLayer
	tls       *tlsConns
	work      *group
	sending   sync.RWMutex  // held for reading while the library may open a socket
	stopped   atomic.Bool   // no message is read or sent any more
	abandoned chan struct{} // closed when Close stops waiting; connecting then ends
}

func (c *connector) init(layer *sip.TransportLayer, t *tlsConns, work *group) {
	c.layer, c.tls, c.work, c.abandoned = layer, t, work, make(chan struct{})
	t.layer = layer
}

// stop ends all sending. drop also closes open connections: a peer may never
// read what is being written. The library opens a socket for any message that it
// sends, even while it is being closed, so it must be given none.
func (c *connector) stop(drop bool) {
	close(c.abandoned)
	if drop {
		_ = c.layer.Pool("tcp").Clear()
		_ = c.layer.Pool("tls").Clear()
	}
	c.sending.Lock()
	c.stopped.Store(true)
	c.sending.Unlock()
}

// withTimeout returns the context for sending a message. It ends with ctx, after
// connectTimeout, or when Close stops waiting.
func (c *connector) withTimeout(ctx context.Context) (context.Context, func()) {
	ctx, end := context.WithTimeout(ctx, connectTimeout)
	ctx, leave := WithStop(ctx, c.abandoned)
	return ctx, func() {
		leave()
		end()
	}
}

// connect provides a connection for a finalized request and keeps it until
// release. It returns the error of ctx as soon as ctx ends. If release is not
// called within writeTimeout, the connection is closed, since the peer does not
// read. A UDP request needs no connection.
func (c *connector) connect(ctx context.Context, req *sip.Request) (release func(), err error) {
	name := ""
	switch req.Transport() {
	case "UDP":
		return func() {}, nil
	case "TLS":
		name = nameToProve(req)
		if err := c.tls.connect(ctx, req.Destination(), name); err != nil {
			return nil, err
		}
	}
	for {
		conn, err := c.open(ctx, req.Clone())
		var netErr net.Error
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_, _ = conn.TryClose()
			}
			return nil, ctx.Err()
		case err == nil && checkName(conn, name) != nil: // the connection was replaced
			_, _ = conn.TryClose()
			return nil, checkName(conn, name)
		case err == nil:
			late := time.AfterFunc(writeTimeout, func() { _ = conn.Close() })
			return func() {
				late.Stop()
				_, _ = conn.TryClose()
			}, nil
		case errors.Is(err, context.Canceled), errors.As(err, &netErr) && netErr.Timeout():
			// The library opens one connection for all requests that wait for the same peer. It uses the context of the
			// first request, and that context has ended. So try again.
		default:
			return nil, err
		}
	}
}

// open finds or opens the connection for a request, which it may change.
func (c *connector) open(ctx context.Context, req *sip.Request) (sip.Connection, error) {
	var conn sip.Connection
	var err error
	opened := make(chan struct{})
	began := c.work.run(func() {
		if conn, err = c.connection(ctx, req); err != nil {
			conn = nil
		}
		select {
		case opened <- struct{}{}:
		case <-ctx.Done(): // the caller has already returned
			if conn != nil {
				_, _ = conn.TryClose()
			}
		}
	})
	if !began {
		return nil, ErrClosed
	}
	select {
	case <-opened:
		return conn, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *connector) connection(ctx context.Context, req *sip.Request) (sip.Connection, error) {
	c.sending.RLock()
	defer c.sending.RUnlock()
	if c.stopped.Load() {
		return nil, ErrClosed
	}
	return c.layer.ClientRequestConnection(ctx, req)
}
