package connlimit

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiter(t *testing.T) {
	g := &Limiter{MaxTotal: 100, MaxPerNetwork: 20}
	network := netip.MustParseAddr("2001:db8:0:1::").As16()
	in := 0
	for n := range 1000 {
		network[14], network[15] = byte(n>>8), byte(n)
		if g.Acquire(netip.AddrFrom16(network)) {
			in++
		}
	}
	if in != g.MaxPerNetwork {
		t.Errorf("one network holds %d connections, want %d", in, g.MaxPerNetwork)
	}
	for _, other := range []string{"2001:db8:0:2::1", "192.0.2.1", "192.0.2.2"} {
		if !g.Acquire(netip.MustParseAddr(other)) {
			t.Errorf("%s is refused, want accepted", other)
		}
		g.Release(netip.MustParseAddr(other))
	}
	for range g.MaxPerNetwork {
		network[15]++
		g.Release(netip.AddrFrom16(network))
	}
	if all, networks := g.Counts(); all != 0 || networks != 0 {
		t.Errorf("%d connections of %d networks remain, want 0", all, networks)
	}
	for n := range 1000 {
		if g.Acquire(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)})) {
			in++
		}
	}
	if in != g.MaxPerNetwork+g.MaxTotal {
		t.Errorf("all networks hold %d connections, want %d", in-g.MaxPerNetwork, g.MaxTotal)
	}
}

// failingListener is a listener whose Accept fails several times before it succeeds.
type failingListener struct {
	fails  int
	conn   net.Conn
	closed bool
}

func (s *failingListener) Accept() (net.Conn, error) {
	switch {
	case s.closed:
		return nil, net.ErrClosed
	case s.fails > 0:
		s.fails--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	default:
		return s.conn, nil
	}
}

func (s *failingListener) Close() error { s.closed = true; return nil }

func (s *failingListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestListenerBacksOff checks that Accept continues after EMFILE, with pauses that grow to one second.
func TestListenerBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer func() { _, _ = ours.Close(), theirs.Close() }()
		failed := 0
		l := NewListener(&failingListener{fails: 10, conn: ours}, &Limiter{MaxTotal: 1, MaxPerNetwork: 1}, func() { failed++ })
		start := time.Now()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		// The pauses are 5, 10, 20, 40, 80, 160, 320, 640, 1000 and 1000 ms.
		if took := time.Since(start); took != 3275*time.Millisecond || failed != 10 {
			t.Errorf("accepted after %v and %d failures", took, failed)
		}
	})
}

func TestListenerCloseEndsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewListener(&failingListener{fails: 1 << 30}, &Limiter{}, nil)
		failed := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			failed <- err
		}()
		<-time.After(time.Minute)
		synctest.Wait()
		start := time.Now()
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, net.ErrClosed) || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
