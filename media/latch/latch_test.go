package latch

import (
	"net/netip"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestLatch(t *testing.T) {
	told, other, thief := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("198.51.100.1:5000"), netip.MustParseAddrPort("203.0.113.1:6000")
	type step struct {
		src  netip.AddrPort
		at   time.Duration
		seq  uint16
		ok   bool
		send netip.AddrPort
	}
	run := func(src netip.AddrPort, from time.Duration, seq uint16, n int, send netip.AddrPort) (steps []step) {
		for i := range n {
			steps = append(steps, step{src, from + time.Duration(i)*20*ms, seq + uint16(i), true, send})
		}
		steps[n-1].send = src
		return steps
	}
	for name, steps := range map[string][]step{
		"as told":                {{told, 0, 1, true, told}},
		"behind a NAT":           run(other, 0, 1, 5, told),
		"not in sequence":        {{other, 0, 1, true, told}, {other, 20 * ms, 5, true, told}, {other, 40 * ms, 1, true, told}, {other, 60 * ms, 9, true, told}, {other, 80 * ms, 2, true, told}},
		"told wins over other":   {{other, 0, 1, true, told}, {told, 20 * ms, 1, true, told}, {other, 30 * ms, 2, false, told}},
		"locked":                 append(run(told, 0, 1, 5, told), step{thief, 100 * ms, 1, false, told}, step{other, 1900 * ms, 1, false, told}, step{told, 2 * time.Second, 9, true, told}),
		"told wins over a lock":  append(run(other, 0, 1, 5, told), step{told, 100 * ms, 1, true, told}, step{other, 120 * ms, 6, false, told}),
		"moved after silence":    append(run(told, 0, 1, 5, told), step{other, 2100 * ms, 1, true, told}),
		"first is soon replaced": {{thief, 0, 1, true, told}, {other, 100 * ms, 1, false, told}, {other, 250 * ms, 2, true, told}},
		"wraps":                  run(other, 0, 65533, 5, told),
	} {
		var l Latch
		l.Tell(told, 0)
		for i, s := range steps {
			ok := l.Admits(s.src, s.at)
			if ok != s.ok {
				t.Errorf("%s, step %d: accepted %v", name, i, ok)
			}
			if ok {
				l.Accept(s.src, 1, s.seq, s.at)
			}
			if got := l.Target(); got != s.send {
				t.Errorf("%s, step %d: sends to %v, want %v", name, i, got, s.send)
			}
		}
	}
}

// TestLatchMoves has SDP tell another address during the call, after 50
// packets from where the party was.
func TestLatchMoves(t *testing.T) {
	old, fresh, nat, thief := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("192.0.2.9:5000"), netip.MustParseAddrPort("198.51.100.1:6000"), netip.MustParseAddrPort("203.0.113.1:7000")
	type burst struct { // of packets 20 ms apart
		src   netip.AddrPort
		n     int
		heard int
		send  netip.AddrPort // after the last
	}
	for name, row := range map[string]struct {
		first  netip.AddrPort // where it sends from, told to be at old
		told   []netip.AddrPort
		bursts []burst
	}{
		"at once":                  {old, []netip.AddrPort{fresh}, []burst{{fresh, 1, 1, fresh}, {old, 8, 0, fresh}}},
		"the old one lingers":      {old, []netip.AddrPort{fresh}, []burst{{old, 10, 10, fresh}, {fresh, 1, 1, fresh}, {old, 5, 0, fresh}, {fresh, 5, 5, fresh}}},
		"it lingers for long":      {old, []netip.AddrPort{fresh}, []burst{{old, 80, 80, old}, {fresh, 1, 1, fresh}, {old, 5, 0, fresh}}},
		"to behind a NAT":          {old, []netip.AddrPort{fresh}, []burst{{old, 10, 10, fresh}, {nat, 5, 5, nat}, {old, 10, 0, nat}, {thief, 80, 0, nat}}},
		"behind a NAT, stays":      {nat, []netip.AddrPort{fresh}, []burst{{nat, 49, 49, fresh}, {nat, 6, 6, nat}}},
		"behind a NAT, held":       {nat, []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:4000"), old}, []burst{{nat, 1, 1, nat}, {thief, 5, 0, nat}}},
		"there and back":           {old, []netip.AddrPort{fresh, old}, []burst{{old, 5, 5, old}, {thief, 5, 0, old}}},
		"a stranger comes between": {old, []netip.AddrPort{fresh}, []burst{{old, 5, 5, fresh}, {thief, 3, 3, fresh}, {fresh, 1, 1, fresh}, {thief, 5, 0, fresh}}},
	} {
		var l Latch
		l.Tell(old, 0)
		at, seq := time.Duration(0), uint16(0)
		send := func(src netip.AddrPort, n int) (heard int) {
			for range n {
				if seq++; l.Admits(src, at) {
					l.Accept(src, 1, seq, at)
					heard++
				}
				at += 20 * ms
			}
			return heard
		}
		send(row.first, 50)
		for _, told := range row.told {
			l.Tell(told, at)
		}
		for i, b := range row.bursts {
			if heard := send(b.src, b.n); heard != b.heard || l.Target() != b.send {
				t.Errorf("%s, burst %d: %d packets heard, want %d; sends to %v, want %v", name, i, heard, b.heard, l.Target(), b.send)
			}
		}
	}
}

// TestAbove says where reports go.
func TestAbove(t *testing.T) {
	told, other, reports := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("198.51.100.1:5000"), netip.MustParseAddrPort("192.0.2.1:7000")
	var l Latch
	if to := l.Above(netip.AddrPort{}); to.IsValid() || l.Host().IsValid() {
		t.Errorf("nobody is known, and is at %v", to)
	}
	l.Tell(told, 0)
	if a, b := l.Above(reports), l.Above(netip.AddrPort{}); a != reports || b.Port() != 4001 || l.Host() != told.Addr() {
		t.Errorf("as told: %v and %v, at %v", a, b, l.Host())
	}
	for n := range uint16(lockAfter) {
		l.Accept(other, 1, n, 0)
	}
	if to := l.Above(reports); to.Port() != 5001 || l.Host() != other.Addr() || l.Source() != other {
		t.Errorf("behind a NAT: %v, at %v", to, l.Host())
	}
	l.Tell(netip.MustParseAddrPort("192.0.2.1:65535"), 0)
	if to := l.Above(netip.AddrPort{}); to.IsValid() {
		t.Errorf("above the last port is %v", to)
	}
}
