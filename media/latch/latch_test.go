package latch

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// step is a packet and the expected result.
type step struct {
	src  netip.AddrPort
	at   time.Duration
	seq  uint16
	ok   bool
	send netip.AddrPort
}

// burst returns packets in sequence, 20 ms apart, each with the expected result ok. The packet that locks the source
// moves the target to src.
func burst(src netip.AddrPort, from time.Duration, seq uint16, n int, ok bool, send netip.AddrPort) (steps []step) {
	for i := range n {
		to := send
		if ok && i >= lockAfter-1 {
			to = src
		}
		steps = append(steps, step{src, from + time.Duration(i)*20*ms, seq + uint16(i), ok, to})
	}
	return steps
}

func TestLatch(t *testing.T) {
	at := netip.MustParseAddrPort
	sdp, sdpOther := at("192.0.2.1:4000"), at("192.0.2.1:4400")
	other, otherElse, unknown := at("198.51.100.1:5000"), at("198.51.100.1:5500"), at("203.0.113.1:6000")
	signals := ExpectedSources{Signaling: []netip.Addr{other.Addr()}}
	same := ExpectedSources{Signaling: []netip.Addr{sdp.Addr()}}
	carrier := ExpectedSources{Media: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}
	type row struct {
		known ExpectedSources
		steps [][]step
	}
	for name, row := range map[string]row{
		"from the SDP address": {ExpectedSources{}, [][]step{{{sdp, 0, 1, true, sdp}}}},
		"behind a NAT": {ExpectedSources{}, [][]step{
			burst(other, 0, 1, 15, false, sdp), burst(other, 300*ms, 16, 5, true, sdp),
		}},
		"behind a NAT, at the signaling address": {signals, [][]step{burst(other, 0, 1, 5, true, sdp)}},
		"behind a NAT, at the SDP host":          {ExpectedSources{}, [][]step{burst(sdpOther, 0, 1, 5, true, sdp)}},
		"from the carrier's networks":            {carrier, [][]step{burst(other, 0, 1, 5, true, sdp)}},
		"from outside the carrier's networks":    {carrier, [][]step{burst(unknown, 0, 1, 300, false, sdp)}},
		"from neither the SDP nor the signaling host": {same, [][]step{
			burst(unknown, 0, 1, 100, false, sdp), burst(unknown, 2*time.Second, 101, 5, true, sdp),
		}},
		"not in sequence":     {signals, [][]step{{{other, 0, 1, true, sdp}, {other, 20 * ms, 5, true, sdp}, {other, 40 * ms, 1, true, sdp}, {other, 60 * ms, 9, true, sdp}, {other, 80 * ms, 2, true, sdp}}}},
		"SDP wins over other": {signals, [][]step{{{other, 0, 1, true, sdp}, {sdp, 20 * ms, 1, true, sdp}, {other, 30 * ms, 2, false, sdp}}}},
		"SDP wins over a lock": {signals, [][]step{
			burst(other, 0, 1, 5, true, sdp), {{sdp, 100 * ms, 1, true, sdp}, {other, 120 * ms, 6, false, sdp}},
		}},
		"the remote party after an unknown source": {signals, [][]step{
			burst(unknown, 400*ms, 1, 5, true, sdp),
			{{other, 500 * ms, 1, true, sdp}, {unknown, 510 * ms, 6, false, sdp}},
			burst(other, 520*ms, 2, 4, true, sdp)[:3],
			{{other, 580 * ms, 5, true, other}, {unknown, 590 * ms, 7, false, other}},
		}},
		"locked": {ExpectedSources{}, [][]step{
			burst(sdp, 0, 1, 5, true, sdp), {{unknown, 100 * ms, 1, false, sdp}, {other, 1900 * ms, 1, false, sdp}, {sdp, 2 * time.Second, 9, true, sdp}},
		}},
		"silent": {signals, [][]step{ // no unknown source may replace a locked one
			burst(sdp, 0, 1, 5, true, sdp), burst(unknown, 3*time.Second, 1, 500, false, sdp), {{sdp, 14 * time.Second, 6, true, sdp}},
		}},
		"silent behind a NAT": {signals, [][]step{
			burst(other, 0, 1, 5, true, sdp), burst(unknown, 3*time.Second, 1, 500, false, other), {{other, 14 * time.Second, 6, true, other}},
		}},
		"silent behind a NAT without signaling address": {ExpectedSources{}, [][]step{
			burst(other, 400*ms, 1, 5, true, sdp), burst(unknown, 3*time.Second, 1, 500, false, other), {{other, 14 * time.Second, 6, true, other}},
		}},
		"the NAT assigns another port": {ExpectedSources{}, [][]step{
			burst(other, 400*ms, 1, 5, true, sdp), {{otherElse, 500 * ms, 6, false, other}, {otherElse, 2500 * ms, 7, true, sdp}},
		}},
		"back at the first port of the NAT": {ExpectedSources{}, [][]step{
			burst(other, 400*ms, 1, 5, true, sdp), burst(otherElse, 3*time.Second, 1, 5, true, sdp), {{other, 3100 * ms, 6, true, sdp}, {otherElse, 3200 * ms, 6, false, sdp}},
		}},
		"an unknown source waits for an expected one that is not locked": {ExpectedSources{}, [][]step{
			{{sdp, 0, 1, true, sdp}, {unknown, 250 * ms, 1, false, sdp}, {unknown, 300 * ms, 2, true, sdp}},
		}},
		"first one is replaced": {ExpectedSources{}, [][]step{{{unknown, 400 * ms, 1, true, sdp}, {other, 500 * ms, 1, false, sdp}, {other, 650 * ms, 2, true, sdp}}}},
		"wraps":                 {signals, [][]step{burst(other, 0, 65533, 5, true, sdp)}},
	} {
		var l Latch
		l.Expect(row.known)
		l.SetRemote(sdp, 0)
		for i, s := range slices.Concat(row.steps...) {
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

// TestLatchAddressChange changes the SDP address after 50 packets from the old address.
func TestLatchAddressChange(t *testing.T) {
	old, moved, nat, unknown := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("192.0.2.9:5000"), netip.MustParseAddrPort("198.51.100.1:6000"), netip.MustParseAddrPort("203.0.113.1:7000")
	type burst struct { // packets that are sent 20 ms apart
		src      netip.AddrPort
		n        int
		accepted int
		send     netip.AddrPort // expected target after the last packet
	}
	for name, row := range map[string]struct {
		first  netip.AddrPort // source of the first packets; the SDP contains old
		sdp    []netip.AddrPort
		bursts []burst
	}{
		"at once":                   {old, []netip.AddrPort{moved}, []burst{{moved, 1, 1, moved}, {old, 8, 0, moved}}},
		"old packets linger":        {old, []netip.AddrPort{moved}, []burst{{old, 10, 10, moved}, {moved, 1, 1, moved}, {old, 5, 0, moved}, {moved, 5, 5, moved}}},
		"old packets linger long":   {old, []netip.AddrPort{moved}, []burst{{old, 80, 80, old}, {moved, 1, 1, moved}, {old, 5, 0, moved}}},
		"to behind a NAT":           {old, []netip.AddrPort{moved}, []burst{{old, 10, 10, moved}, {nat, 10, 5, nat}, {old, 10, 0, nat}, {unknown, 80, 0, nat}}},
		"behind a NAT, stays":       {nat, []netip.AddrPort{moved}, []burst{{nat, 49, 49, moved}, {nat, 6, 6, nat}}},
		"behind a NAT, held":        {nat, []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:4000"), old}, []burst{{nat, 1, 1, nat}, {unknown, 5, 0, nat}}},
		"back to the old address":   {old, []netip.AddrPort{moved, old}, []burst{{old, 5, 5, old}, {unknown, 5, 0, old}}},
		"unknown source in between": {old, []netip.AddrPort{moved}, []burst{{old, 5, 5, moved}, {unknown, 3, 0, moved}, {moved, 1, 1, moved}, {unknown, 5, 0, moved}}},
	} {
		var l Latch
		l.SetRemote(old, 0)
		at, seq := time.Duration(0), uint16(0)
		send := func(src netip.AddrPort, n int) (accepted int) {
			for range n {
				if seq++; l.Admits(src, at) {
					l.Accept(src, 1, seq, at)
					accepted++
				}
				at += 20 * ms
			}
			return accepted
		}
		send(row.first, 50)
		for _, sdp := range row.sdp {
			l.SetRemote(sdp, at)
		}
		for i, b := range row.bursts {
			if accepted := send(b.src, b.n); accepted != b.accepted || l.Target() != b.send {
				t.Errorf("%s, burst %d: accepted %d packets, want %d; sends to %v, want %v", name, i, accepted, b.accepted, l.Target(), b.send)
			}
		}
	}
}

func TestReportTarget(t *testing.T) {
	sdp, other, reports := netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("198.51.100.1:5000"), netip.MustParseAddrPort("192.0.2.1:7000")
	var l Latch
	if to := l.ReportTarget(netip.AddrPort{}); to.IsValid() || l.Host().IsValid() {
		t.Errorf("got %v before any address is known", to)
	}
	l.SetRemote(sdp, 0)
	if a, b := l.ReportTarget(reports), l.ReportTarget(netip.AddrPort{}); a != reports || b.Port() != 4001 || l.Host() != sdp.Addr() {
		t.Errorf("from SDP: %v and %v, at %v", a, b, l.Host())
	}
	for n := range uint16(lockAfter) {
		l.Accept(other, 1, n, 0)
	}
	if to := l.ReportTarget(reports); to.Port() != 5001 || l.Host() != other.Addr() || l.Source() != other {
		t.Errorf("behind a NAT: %v, at %v", to, l.Host())
	}
	l.SetRemote(netip.MustParseAddrPort("192.0.2.1:65535"), 0)
	if to := l.ReportTarget(netip.AddrPort{}); to.IsValid() {
		t.Errorf("above the last port is %v", to)
	}
}

// TestHoldWithoutAddress checks that no unknown source replaces a party behind a NAT that puts the call on hold with
// the address 0.0.0.0.
func TestHoldWithoutAddress(t *testing.T) {
	ap := netip.MustParseAddrPort
	nat, unknown := ap("198.51.100.9:4000"), ap("203.0.113.6:9999")
	var l Latch
	at, seq := time.Second, uint16(0)
	send := func(src netip.AddrPort, ssrc uint32) (accepted int) {
		for range 50 {
			at += 20 * time.Millisecond
			if seq++; l.Admits(src, at) {
				l.Accept(src, ssrc, seq, at)
				accepted++
			}
		}
		return accepted
	}
	l.SetRemote(ap("10.0.0.5:4000"), 0)
	send(nat, 1)
	l.SetRemote(ap("0.0.0.0:4000"), at)
	at += 5 * time.Second
	if n := send(unknown, 2); n > 0 {
		t.Errorf("accepted %d packets of an unknown source, want 0", n)
	}
	if n := send(nat, 1); n != 50 || l.Source() != nat {
		t.Errorf("accepted %d packets of the remote party, source %v", n, l.Source())
	}
}
