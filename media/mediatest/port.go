package mediatest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns an even port of 127.0.0.1 that is free for UDP and TCP, as is the odd one above. It lies below the
// ports that the kernel gives to connecting sockets, which would take it before the caller does.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range 500 {
		port := 10_000 + 2*rand.IntN(5_000) //nolint:gosec // not a secret
		if isFree(tb, port) && isFree(tb, port+1) {
			return port
		}
	}
	tb.Fatal("no free port")
	return 0
}

func isFree(tb testing.TB, port int) bool {
	tb.Helper()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	var listen net.ListenConfig
	c, err := listen.ListenPacket(tb.Context(), "udp", addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	l, err := listen.Listen(tb.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
