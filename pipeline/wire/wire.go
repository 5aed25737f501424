// Package wire opens the WebSockets that providers are reached by.
package wire

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"

	"github.com/gorilla/websocket"

	"github.com/parley-voice/parley/pipeline"
)

// Longest is the longest message that a provider may send, in bytes: 1 MiB holds
// 30 s of speech in base64.
const Longest = 1 << 20

// A Dial opens a connection; nil is TCP.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Open opens a WebSocket. Secrets belong into head: the address may be told in
// errors. Of a provider that refuses the error is a pipeline.RefusedError.
func Open(ctx context.Context, name, address string, query url.Values, head http.Header, dial Dial) (*websocket.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: url: %w", name, err)
	}
	q := u.Query()
	maps.Copy(q, query)
	u.RawQuery = q.Encode()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: dial}
	conn, resp, err := dialer.DialContext(ctx, u.String(), head)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // what is left of a handshake
	}
	switch {
	case err != nil && resp != nil:
		return nil, fmt.Errorf("%s: %w", name, pipeline.NewRefusedError(resp, ""))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	conn.SetReadLimit(Longest)
	return conn, nil
}
