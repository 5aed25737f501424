package endpoint

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emiago/sipgo/sip"
)

// A silentNet is the socket of a peer that never responds. It counts the INVITEs.
type silentNet struct {
	net.PacketConn

	done    chan struct{}
	invites atomic.Int64
}

func (s *silentNet) open(string) (net.PacketConn, net.Listener, error) { return s, s, nil }

func (s *silentNet) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5060}
}

func (s *silentNet) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5060} }

func (s *silentNet) ReadFrom([]byte) (int, net.Addr, error) {
	<-s.done
	return 0, nil, net.ErrClosed
}

func (s *silentNet) Accept() (net.Conn, error) {
	<-s.done
	return nil, net.ErrClosed
}

func (s *silentNet) WriteTo(b []byte, _ net.Addr) (int, error) {
	if bytes.HasPrefix(b, []byte("INVITE ")) {
		s.invites.Add(1)
	}
	return len(b), nil
}

func (s *silentNet) Close() error {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	return nil
}

// TestNoInviteAfterSuspension checks that an INVITE is not repeated after the machine was suspended for longer than
// carriers remember it. The carrier would take the copy for another call, and the phone would ring twice.
func TestNoInviteAfterSuspension(t *testing.T) {
	for _, row := range []struct {
		suspended time.Duration
		copies    int64
	}{{0, 7}, {10 * time.Second, 6}, {time.Minute, 3}} { // copies leave after 0, 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s
		synctest.Test(t, func(t *testing.T) {
			silent := &silentNet{done: make(chan struct{})}
			e := &Endpoint{Listen: "127.0.0.1:5060", OpenSockets: silent.open}
			var suspended atomic.Int64 // the library's timers do not count it
			e.invites.now = func() time.Time { return time.Now().Add(time.Duration(suspended.Load())) }
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			to := sip.Uri{Scheme: "sip", User: "12025550123", Host: "127.0.0.1", Port: 5062}
			req := sip.NewRequest(sip.INVITE, to)
			id := sip.CallIDHeader("suspended")
			from := &sip.FromHeader{Address: to}
			from.Params.Add("tag", "1")
			for _, h := range []sip.Header{from, &sip.ToHeader{Address: to}, &id, &sip.CSeqHeader{SeqNo: 1, MethodName: sip.INVITE}} {
				req.AppendHeader(h)
			}
			req.SetTransport("UDP")
			req.SetDestination("127.0.0.1:5062")
			e.Finalize(req)
			tx, err := e.Send(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * time.Second)
			suspended.Store(int64(row.suspended))
			<-tx.Done()
			if n := silent.invites.Load(); n != row.copies || !errors.Is(tx.Err(), sip.ErrTransactionTimeout) {
				t.Errorf("suspended for %v: %d copies, %v", row.suspended, n, tx.Err())
			}
			if err = e.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			if n := len(e.invites.first); n != 0 {
				t.Errorf("%d INVITEs are remembered after their end", n)
			}
		})
	}
}
