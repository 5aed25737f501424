// Package wire opens the WebSockets that providers are reached by.
package wire

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

// Longest is the longest message that a provider may send, in bytes: 1 MiB holds
// 30 s of speech in base64.
const Longest = 1 << 20

// A Dial opens a connection; nil is TCP.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// handshakeLimit bounds the opening of a connection: TCP, TLS and the upgrade.
const handshakeLimit = 5 * time.Second

var errUnanswered = errors.New("the handshake was not answered in 5 s")

// Open opens a WebSocket. ctx bounds the opening alone. Secrets belong into head:
// the address may be told in errors. Of a provider that refuses the error is a
// pipeline.RefusedError.
func Open(ctx context.Context, name, address string, query url.Values, head http.Header, dial Dial) (*websocket.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: url: %w", name, err)
	}
	q := u.Query()
	maps.Copy(q, query)
	u.RawQuery = q.Encode()
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeLimit, errUnanswered)
	defer cancel()
	conn, resp, err := shake(ctx, u.String(), head, dial)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // what is left of a handshake
	}
	switch {
	case err != nil && resp != nil:
		return nil, fmt.Errorf("%s: %w", name, pipeline.NewRefusedError(resp, ""))
	case errors.Is(err, os.ErrDeadlineExceeded): // the connection's, which is that of ctx
		<-ctx.Done()
		return nil, fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w: %w", name, context.Cause(ctx), err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	conn.SetReadLimit(Longest)
	return conn, nil
}

// shake connects and shakes hands. The dialer heeds the deadline of ctx alone
// once it is connected, so the end of ctx cuts the connection under it.
func shake(ctx context.Context, address string, head http.Header, dial Dial) (*websocket.Conn, *http.Response, error) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	let := func() bool { return true }
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		let = context.AfterFunc(ctx, func() { _ = conn.Close() })
		return conn, nil
	}}
	conn, resp, err := dialer.DialContext(ctx, address, head)
	if !let() && err == nil {
		return nil, nil, cmp.Or(conn.Close(), ctx.Err())
	}
	return conn, resp, err
}
