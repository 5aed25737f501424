package sanitize

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"
	"pgregory.net/rapid"
)

func now() time.Time { return time.Unix(1_800_000_000, 0) }

func TestLimit(t *testing.T) {
	var l Limit
	at, a, b := now(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	count := func(addr netip.Addr, at time.Time, tries int) (taken int) {
		for range tries {
			if l.Allow(addr, at) {
				taken++
			}
		}
		return taken
	}
	if n := count(a, at, 1000); n != burst {
		t.Errorf("%d at once, want %d", n, burst)
	}
	if n := count(b, at, 1); n != 1 {
		t.Error("the limit of one address affects another")
	}
	if n := count(netip.MustParseAddr("::ffff:192.0.2.1"), at, 10); n != 0 {
		t.Errorf("%d more by another form of the address", n)
	}
	if n := count(a, at.Add(time.Second), 1000); n != perSecond {
		t.Errorf("%d a second later, want %d", n, perSecond)
	}
	if n := count(a, at.Add(time.Hour), 1000); n != burst {
		t.Errorf("%d an hour later, want %d", n, burst)
	}
	if n := count(a, at, 10); n != 0 {
		t.Errorf("%d after the clock went back", n)
	}
	l.Exempt(a, at)
	if n := count(a, at.Add(time.Hour), 10_000); n != 10_000 || !l.IsExempt(a) || l.IsExempt(b) {
		t.Errorf("%d of 10000 of an exempt address", n)
	}
	six := netip.MustParseAddr("2001:db8::1")
	if n := count(six, at, burst); n != burst || l.Allow(netip.MustParseAddr("2001:db8::2"), at) {
		t.Errorf("%d, or a neighbor in the same /64 has its own limit", n)
	}
	l.Exempt(b, at.Add(2*exemptFor))
	l.Exempt(b, at.Add(4*exemptFor))
	if l.IsExempt(a) || !l.IsExempt(b) {
		t.Error("an exemption does not expire")
	}
}

// TestLimitForgets checks that forged addresses take a bounded amount of memory.
func TestLimitForgets(t *testing.T) {
	var l Limit
	for n := range uint32(100_000) {
		addr := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
		if !l.Allow(addr, now()) {
			t.Fatalf("%v was refused", addr)
		}
		l.Exempt(addr, now())
	}
	if n := len(l.current) + len(l.previous); n > 2*addresses {
		t.Errorf("%d addresses are stored", n)
	}
	if n := len(l.exempt[0]) + len(l.exempt[1]); n > 2*addresses {
		t.Errorf("%d exempt addresses are stored", n)
	}
}

func TestIsMerged(t *testing.T) {
	var m MergeDetector
	isMerged := func(text string, at time.Time) bool { return m.IsMerged(parse(t, text), at) }
	first, other := request("INVITE", "sip:c@d"), request("INVITE", "sip:c@d", "Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKb")
	for _, row := range []struct {
		name, text string
		after      time.Duration
		want       bool
	}{
		{"new", first, 0, false},
		{"retransmitted", first, 0, false},
		{"by another path", other, 0, true},
		{"next CSeq of the call", request("INVITE", "sip:c@d", "CSeq: 2 INVITE"), 0, false},
		{"another method", request("OPTIONS", "sip:c@d"), 0, false},
		{"another caller", request("INVITE", "sip:c@d", "From: <sip:a@b>;tag=g"), 0, false},
		{"by another path, soon", other, 17 * time.Second, true},
		{"by another path, later", other, 40 * time.Second, false},
	} {
		if got := isMerged(row.text, now().Add(row.after)); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	for n := range 20_000 {
		isMerged(request("OPTIONS", "sip:c@d", fmt.Sprintf("Call-ID: %d", n)), now())
	}
	if n := len(m.current) + len(m.previous); n > 2*addresses {
		t.Errorf("%d requests are stored", n)
	}
}

func TestScan(t *testing.T) {
	good := "OPTIONS sip:a@b SIP/2.0\r\nVia: x\r\nContent-Length: 5\r\n\r\nabcde"
	for name, row := range map[string]struct {
		text  string
		heads int
		want  error
	}{
		"nothing":               {"", 0, nil},
		"keep-alives":           {strings.Repeat("\r\n", 20_000), 0, nil},
		"one":                   {good, 1, nil},
		"three":                 {good + "\r\n\r\n" + good + good, 3, nil},
		"a short name":          {strings.Replace(good, "Content-Length", "l ", 1), 1, nil},
		"line breaks in a body": {strings.Replace(good, "5\r\n\r\nabcde", "8\r\n\r\n\r\n\r\n\r\n\r\n", 1) + good, 2, nil},
		"bare feeds":            {strings.ReplaceAll(good, "\r\n", "\n"), 0, errFeed},
		"incomplete header":     {good[:40], 0, nil},
		"no length":             {strings.Replace(good, "Content-Length: 5\r\n", "", 1), 0, errLength},
		"two lengths":           {strings.Replace(good, "\r\n\r\n", "\r\nl: 5\r\n\r\n", 1), 0, errLength},
		"a negative length":     {strings.Replace(good, ": 5", ": -5", 1), 0, errLength},
		"an endless length":     {strings.Replace(good, ": 5", ": 4294967295", 1), 0, errLength},
		"a long body":           {strings.Replace(good, ": 5", ": 16384", 1), 0, errMessage},
		"5,000 headers":         {strings.Replace(good, "Via: x\r\n", strings.Repeat("Via: x\r\n", 5000), 1), 0, errHeaders},
		"an endless line":       {strings.Repeat("x", 5000), 0, errLine},
		"an endless first line": {good + strings.Repeat("x", 5000), 1, errLine},
		"a long header":         {strings.Replace(good, "Via: x", strings.Repeat("Via: "+strings.Repeat("x", 4000)+"\r\n", 5)+"Via: x", 1), 0, errMessage},
	} {
		var s scanner
		heads, err := s.scan([]byte(row.text))
		if heads != row.heads || !errors.Is(err, row.want) {
			t.Errorf("%s: %d headers, %v", name, heads, err)
		}
	}
}

// TestScanPieces checks that the split of a stream has no effect.
func TestScanPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"OPTIONS sip:a@b SIP/2.0\r\n", "Content-Length: 3\r\n", "l:0\r\n", "\r\n", "abc", "Via: x\r\n", strings.Repeat("y", 1000),
		}), 0, 40).Draw(t, "parts")
		text := strings.Join(parts, "")
		var whole, cut scanner
		want, wantErr := whole.scan([]byte(text))
		got, gotErr := 0, error(nil)
		for len(text) > 0 && gotErr == nil {
			n := rapid.IntRange(1, len(text)).Draw(t, "n")
			var heads int
			heads, gotErr = cut.scan([]byte(text[:n]))
			got, text = got+heads, text[n:]
		}
		if got != want || (gotErr == nil) != (wantErr == nil) || gotErr == nil && whole.isIdle() != cut.isIdle() {
			t.Fatalf("%d, %v in one, %d, %v in pieces", want, wantErr, got, gotErr)
		}
	})
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("OPTIONS sip:a@b SIP/2.0\r\nl: 3\r\n\r\nabc"))
	f.Add([]byte("\r\n\r\nx\nl:\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s scanner
		heads, err := s.scan(data)
		if heads < 0 || s.body < 0 || s.body > maxMessage || len(s.line) > maxLine || err == nil && s.size > maxMessage {
			t.Fatalf("%d headers, %v, %+v", heads, err, s)
		}
	})
}

// TestFilterLimits checks that messages above the limit are dropped and counted.
func TestFilterLimits(t *testing.T) {
	trusted := netip.MustParseAddr("192.0.2.9")
	f := Filter{AlwaysTrusted: func(a netip.Addr) bool { return a == trusted }}
	pass := func(host string) (n int) {
		in := sip.TransportReadProps{Transport: "UDP", RemoteAddr: net.UDPAddrFromAddrPort(netip.MustParseAddrPort(host))}
		for range 1000 {
			if got, err := f.Read(in, []byte("OPTIONS sip:a@b SIP/2.0\r\n\r\n")); err != nil {
				t.Fatal(err)
			} else if len(got) > 0 {
				n++
			}
		}
		return n
	}
	if n := pass("192.0.2.1:5060"); n < burst || n > burst+perSecond {
		t.Errorf("%d passed", n)
	}
	if n := pass("192.0.2.9:5060"); n != 1000 {
		t.Errorf("%d of a trusted address", n)
	}
	f.Trust("192.0.2.2:5060")
	f.Trust("name.example:5060")
	if n := pass("192.0.2.2:7777"); n != 1000 || !f.Trusts("192.0.2.2:1") || !f.Trusts("192.0.2.9:1") || f.Trusts("192.0.2.1:5060") || f.Trusts("name.example:5060") {
		t.Errorf("%d of an exempt address", n)
	}
	f.CountRefused(400)
	f.CountRefused(400)
	f.CountRefused(503)
	c := f.Counts()
	if c.Limited < 800 || c.Limited > 900 || c.Dropped != 0 || c.Refused[400] != 2 || c.Refused[503] != 1 {
		t.Errorf("%+v", c)
	}
}

// A rot1Conn changes each byte of a connection, like a cipher.
type rot1Conn struct{ net.Conn }

func (c rot1Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for i := range b[:n] {
		b[i]--
	}
	return n, err
}

// TestConnDeadlines checks the deadlines of a connection: short for the first header and for an
// incomplete message, longer between messages. The decrypted text is checked.
func TestConnDeadlines(t *testing.T) {
	raw, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(raw, &Filter{}, func(c net.Conn) net.Conn { return rot1Conn{c} })
	defer func() { _ = l.Close() }()
	out, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", raw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	c := in.(*conn)
	write := func(text string) {
		t.Helper()
		sent := []byte(text)
		for i := range sent {
			sent[i]++
		}
		if _, err := out.Write(sent); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, len(sent))
		for got := 0; got < len(sent); {
			n, err := in.Read(buf[got:])
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
		if string(buf) != text {
			t.Fatalf("read %q", buf)
		}
	}
	left := func() time.Duration { at := time.Now(); return c.deadline(at).Sub(at) }
	within := func(what string, most time.Duration) {
		t.Helper()
		if d := left(); d > most || d < most-2*time.Second {
			t.Errorf("%s: %v left, want %v", what, d, most)
		}
	}
	within("at first", firstHeaderTimeout)
	write("OPTIONS sip:a@b SIP/2.0\r\n")
	within("half a header", firstHeaderTimeout)
	write("l: 3\r\n\r\n")
	within("half a message", messageTimeout)
	write("abc")
	within("between messages", idleTimeout)
	write("OPTIONS ")
	within("a message that began", messageTimeout)
	began := c.since
	write("sip:a@b")
	if !c.since.Equal(began) {
		t.Error("slow bytes extend the deadline")
	}
}
