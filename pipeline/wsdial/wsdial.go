// Package wsdial opens WebSockets to providers.
package wsdial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
)

// MaxMessage is the maximum size of a provider's message in bytes: 1 MiB holds 30 s of
// speech in base64.
const MaxMessage = 1 << 20

// A DialFunc opens a connection. nil means TCP, through the proxy in the environment variables if one is
// set. A DialFunc that is not nil uses no proxy, so that it receives the address of the provider.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// handshakeLimit bounds the connection set-up: TCP, TLS and the upgrade.
const handshakeLimit = 5 * time.Second

const errHandshake = pipeline.TimeoutError("no handshake response within 5 s")

// Open opens a WebSocket. ctx bounds only the opening. Secrets belong in head, because
// errors may contain the address. If the provider rejects the request, the error is a
// *pipeline.RefusedError.
func Open(ctx context.Context, name, address string, query url.Values, head http.Header, dial DialFunc) (*websocket.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: url: %w", name, err)
	}
	q := u.Query()
	maps.Copy(q, query)
	u.RawQuery = q.Encode()
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeLimit, errHandshake)
	defer cancel()
	conn, resp, err := handshake(ctx, u.String(), head, dial)
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close() // the rest of the response is not needed
	}
	switch {
	case err != nil && resp != nil:
		return nil, fmt.Errorf("%s: %w", name, pipeline.NewRefusedError(resp, pipeline.RefusalText(resp, head)))
	case errors.Is(err, os.ErrDeadlineExceeded): // the connection has the deadline of ctx
		<-ctx.Done()
		return nil, fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w: %w", name, context.Cause(ctx), err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	conn.SetReadLimit(MaxMessage)
	return conn, nil
}

// handshake connects and upgrades to WebSocket. Once the dialer has connected, it ignores the
// cancellation of ctx. handshake therefore closes the connection when ctx ends.
func handshake(ctx context.Context, address string, head http.Header, dial DialFunc) (*websocket.Conn, *http.Response, error) {
	proxy := http.ProxyFromEnvironment
	if dial != nil {
		proxy = nil
	} else {
		dial = new(net.Dialer).DialContext
	}
	stop := func() bool { return true }
	dialer := websocket.Dialer{
		Proxy: proxy,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			return quicken(conn), nil
		},
	}
	conn, resp, err := dialer.DialContext(ctx, address, head)
	if !stop() && err == nil {
		return nil, nil, cmp.Or(conn.Close(), ctx.Err())
	}
	return conn, resp, err
}
