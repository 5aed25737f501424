package rtp

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pion/rtp"
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
			t.Errorf("%s: got %+v, want an error", name, p)
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

func TestPorts(t *testing.T) {
	p, err := ParsePorts("21001-21007") // the even ports 21002, 21004 and 21006, each with the port above
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
	p.release(freed, now)
	if _, err = p.take(loopback(), now.Add(portRest-1)); !errors.Is(err, ErrNoPort) {
		t.Errorf("a resting port: %v", err)
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
