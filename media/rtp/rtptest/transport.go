// Package rtptest provides media transports for tests.
package rtptest

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/media/rtp"
)

// New returns a transport with the address ip, a running clock, and ports that the kernel chooses. At the end of the
// test, no session may be open and no port in use.
func New(tb testing.TB, ip string) (*rtp.Transport, *rtp.Ports) {
	tb.Helper()
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		tb.Fatal(err)
	}
	clock := &mediaclock.Clock{}
	transport, err := rtp.NewTransport(clock, ports, netip.MustParseAddr(ip), netip.Addr{})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { clock.Run(ctx) })
	tb.Cleanup(func() {
		if sessions, used := transport.SessionCount(), ports.InUse(); sessions+used > 0 {
			tb.Errorf("%d media sessions and %d ports left", sessions, used)
		}
		transport.Close()
		cancel()
		running.Wait()
	})
	return transport, ports
}
