package rtp

import (
	"net/netip"
	"testing"
	"time"
)

func TestCheckReachable(t *testing.T) {
	for _, row := range []struct {
		local, to string
		ok        bool
	}{
		{"127.0.0.1", "192.0.2.1", true},
		{"127.0.0.1", "::ffff:192.0.2.1", true},
		{"0.0.0.0", "192.0.2.1", true},
		{"127.0.0.1", "2001:db8::1", false},
		{"127.0.0.1", "0.0.0.0", false},
		{"127.0.0.1", "::", false},
		{"127.0.0.1", "239.1.2.3", false},
		{"127.0.0.1", "255.255.255.255", false},
		{"::1", "2001:db8::1", true},
		{"::1", "192.0.2.1", false},
		{"::1", "ff02::1", false},
		{"::1", "::", false},
		{"::", "192.0.2.1", true},
		{"::", "2001:db8::1", true},
		{"::", "::ffff:0.0.0.0", false},
	} {
		err := checkReachable(netip.MustParseAddr(row.local), netip.MustParseAddr(row.to))
		if (err == nil) != row.ok {
			t.Errorf("from %s to %s: %v", row.local, row.to, err)
		}
	}
	if checkReachable(netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.Addr{}) == nil {
		t.Error("got no error for an invalid address")
	}
}

func TestSendReceive(t *testing.T) {
	var ends [2]*udpSocket
	for i := range ends {
		s, err := listenUDP(netip.MustParseAddrPort("127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ends[i] = s
	}
	a, b := ends[0], ends[1]
	if a.Send([]byte{1}) {
		t.Error("Send: got true without a target")
	}
	a.SetTarget(b.Local())
	var r packetReceiver
	if _, ok := r.Receive(b); ok {
		t.Error("received a packet that was not sent")
	}
	for _, n := range []int{1, 160, maxPacket} {
		if !a.Send(make([]byte, n)) {
			t.Fatalf("%d bytes not sent", n)
		}
		got, ok := r.Receive(b)
		if !ok || len(got) != n || r.From() != a.Local() {
			t.Errorf("%d bytes of %v, %v", len(got), r.From(), ok)
		}
		if age := r.Age(time.Now().Add(50 * time.Millisecond)); age < 50*time.Millisecond || age > time.Second {
			t.Errorf("age %v", age)
		}
	}
	a.Send(make([]byte, maxPacket+1))
	if got, ok := r.Receive(b); !ok || got != nil {
		t.Errorf("%d bytes of a packet that is too long", len(got))
	}
	out, in := make([]byte, 172), b
	if n := testing.AllocsPerRun(100, func() { a.Send(out); r.Receive(in); r.From() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
