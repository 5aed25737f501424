package rtp

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media/jitter"
)

const ms = time.Millisecond

func TestParse(t *testing.T) {
	payload := []byte{1, 2, 3, 4}
	plain := make([]byte, headerLen)
	want := packet{marker: true, pt: 101, seq: 65535, ts: 1 << 31, ssrc: 7}
	putHeader(plain, want)
	extended := append(bytes.Clone(plain), 0xbe, 0xde, 0, 1, 9, 9, 9, 9)
	extended[0] |= 0x10
	sources := append(bytes.Clone(plain), 1, 2, 3, 4, 5, 6, 7, 8)
	sources[0] |= 2
	padded := bytes.Clone(plain)
	padded[0] |= 0x20
	for name, b := range map[string][]byte{
		"plain":     append(bytes.Clone(plain), payload...),
		"extension": append(extended, payload...),
		"sources":   append(sources, payload...),
		"padding":   append(append(padded, payload...), 0, 0, 3),
	} {
		p, ok := parse(&rtp.Header{}, b)
		if !ok || !bytes.Equal(p.payload, payload) || p.marker != want.marker || p.pt != want.pt || p.seq != want.seq || p.ts != want.ts || p.ssrc != want.ssrc {
			t.Errorf("%s: %+v, %v", name, p, ok)
		}
	}
	for name, b := range map[string][]byte{
		"empty":          nil,
		"short":          plain[:11],
		"version 1":      append([]byte{0x40}, plain[1:]...),
		"RTCP":           append([]byte{0x80, 200}, plain[2:]...),
		"no sources":     append([]byte{0x8f}, plain[1:]...),
		"no extension":   append([]byte{0x90}, plain[1:]...),
		"long extension": append(append([]byte{0x90}, plain[1:]...), 0, 0, 0xff, 0xff),
		"long padding":   append(append([]byte{0xa0}, plain[1:]...), 9),
		"zero padding":   append(append([]byte{0xa0}, plain[1:]...), 0),
	} {
		if p, ok := parse(&rtp.Header{}, b); ok {
			t.Errorf("%s was taken as %+v", name, p)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x80, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0xff})
	f.Add([]byte{0xb2, 0x80, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0xbe, 0xde, 0, 1, 0, 0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := parse(&rtp.Header{}, b)
		if !ok {
			return
		}
		if len(p.payload) > len(b)-headerLen {
			t.Fatalf("payload of %d in %d bytes", len(p.payload), len(b))
		}
		again := make([]byte, headerLen)
		putHeader(again, p)
		q, ok := parse(&rtp.Header{}, append(again, p.payload...))
		q.payload, p.payload = nil, nil
		if !ok || fmt.Sprint(q) != fmt.Sprint(p) {
			t.Fatalf("%+v became %+v", p, q)
		}
	})
}

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
		var l latch
		l.tell(told, 0)
		for i, s := range steps {
			ok := l.admits(s.src, s.at)
			if ok != s.ok {
				t.Errorf("%s, step %d: accepted %v", name, i, ok)
			}
			if ok {
				l.accept(s.src, &packet{seq: s.seq, ssrc: 1}, s.at)
			}
			if got := l.target(); got != s.send {
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
		var l latch
		l.tell(old, 0)
		at, seq := time.Duration(0), uint16(0)
		send := func(src netip.AddrPort, n int) (heard int) {
			for range n {
				if seq++; l.admits(src, at) {
					l.accept(src, &packet{seq: seq, ssrc: 1}, at)
					heard++
				}
				at += 20 * ms
			}
			return heard
		}
		send(row.first, 50)
		for _, told := range row.told {
			l.tell(told, at)
		}
		for i, b := range row.bursts {
			if heard := send(b.src, b.n); heard != b.heard || l.target() != b.send {
				t.Errorf("%s, burst %d: %d packets heard, want %d; sends to %v, want %v", name, i, heard, b.heard, l.target(), b.send)
			}
		}
	}
}

func TestPorts(t *testing.T) {
	p, err := ParsePorts("21001-21007") // 21002, 21004, 21006, each with the one above
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var open []pair
	defer func() {
		for _, s := range open {
			s.close()
		}
	}()
	for range 3 {
		s, bound := p.take(loopback(), now)
		if bound != nil {
			t.Skipf("the ports of this test are in use: %v", bound)
		}
		if port := s.audio.Local().Port(); port%2 != 0 || port < 21002 || port > 21006 || s.reports.Local().Port() != port+1 {
			t.Errorf("port %d", port)
		}
		open = append(open, s)
	}
	if _, err = p.take(loopback(), now); !errors.Is(err, ErrNoPort) || p.InUse() != 3 {
		t.Errorf("a fourth port: %v, %d in use", err, p.InUse())
	}
	freed := open[0].audio.Local().Port()
	open[0].close()
	open = open[1:]
	p.give(freed, now)
	if _, err = p.take(loopback(), now.Add(portRest-1)); !errors.Is(err, ErrNoPort) {
		t.Errorf("a port that rests: %v", err)
	}
	s, err := p.take(loopback(), now.Add(portRest))
	if err != nil || s.audio.Local().Port() != freed {
		t.Fatalf("after the rest: %v", err)
	}
	open = append(open, s)
}

func TestParsePorts(t *testing.T) {
	for _, bad := range []string{"", "1", "a-b", "2-1", "0-9", "1-1", "70000-70002", "20000-20000", "20001-20002", "1-2-3", "-5-10", "1-"} {
		if p, err := ParsePorts(bad); err == nil {
			t.Errorf("%q: %+v", bad, p)
		}
	}
	for text, want := range map[string]int{"20000-29999": 5000, "20000-20001": 1, "20000-20002": 1, "20001-20003": 1, "20001-20004": 1} {
		if p, err := ParsePorts(text); err != nil || p.count != want {
			t.Errorf("%s: %+v, %v, want %d", text, p, err, want)
		}
	}
}

func TestRing(t *testing.T) {
	var r ring
	for i := range ringLen {
		if !r.push(&packet{seq: uint16(i), payload: []byte{byte(i)}}, jitter.Speech, 0) {
			t.Fatalf("full after %d", i)
		}
	}
	if r.push(&packet{}, jitter.Speech, 0) {
		t.Error("a full ring took one more")
	}
	for i := range ringLen {
		s := r.peek()
		if s == nil || s.seq != uint16(i) || s.n != 1 || s.payload[0] != byte(i) {
			t.Fatalf("slot %d: %+v", i, s)
		}
		r.drop()
	}
	if r.peek() != nil {
		t.Error("an empty ring has a packet")
	}
}
