package sanitize

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/emiago/sipgo/sip"
)

func TestCheckText(t *testing.T) {
	for _, good := range []string{"", "spring sale", "Grüße", `"quoted" <sip:a@b>`} {
		if err := CheckText("x", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"a\r\nb", "a\nb", "\x00", "\t", "\x7f", "\xff", strings.Repeat("a", 513)} {
		if err := CheckText("x", bad); err == nil {
			t.Errorf("%.20q was accepted", bad)
		}
	}
}

func TestCheckNumber(t *testing.T) {
	for _, good := range []string{"12025550123", "+1", "*67#", "alice", "a-b_c.d"} {
		if err := CheckNumber("x", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "1@b", "1;phone-context=x", "1 2", "1\r\n", "é", "1?a=b", "%0d"} {
		if err := CheckNumber("x", bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if got := EscapeUser("*67#"); got != "*67%23" {
		t.Errorf("escaped %q", got)
	}
}

func TestCheckHeader(t *testing.T) {
	if err := CheckHeader("X-Campaign", "spring"); err != nil {
		t.Error(err)
	}
	for name, value := range map[string]string{
		"": "a", "X A": "a", "X:": "a", "X\r\nY": "a", "X-A": "a\r\nb", "VIA": "a", "l": "5", "Authorization": "a", "Ü": "a",
		"privacy": "none", "Diversion": "<sip:a@b>", "P-Asserted-identity": "<sip:a@b>",
	} {
		if err := CheckHeader(name, value); err == nil {
			t.Errorf("%q: %q was accepted", name, value)
		}
	}
}

func TestCheckHeaders(t *testing.T) {
	for name, row := range map[string]struct {
		headers map[string]string
		ok      bool
	}{
		"none":                      {nil, true},
		"two":                       {map[string]string{"X-A": "a", "X-B": "a"}, true},
		"one refused":               {map[string]string{"X-A": "a", "Via": "a"}, false},
		"a bad value":               {map[string]string{"X-A": "a\r\nb"}, false},
		"same name in another case": {map[string]string{"X-A": "a", "x-a": "b"}, false},
		"short and long form":       {map[string]string{"s": "a", "Subject": "b"}, false},
		"a trunk setting":           {map[string]string{"PRIVACY": "id"}, false},
	} {
		if err := CheckHeaders(row.headers); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckID(t *testing.T) {
	if err := CheckID("x", "call_9-Z.1"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "a@b", "a b", "a\r", strings.Repeat("a", 129)} {
		if err := CheckID("x", bad); err == nil {
			t.Errorf("%.20q was accepted", bad)
		}
	}
}

func TestClean(t *testing.T) {
	if got := Clean("Not\x1b[31m Here\r\n\xff"); got != "Not[31m Here" {
		t.Errorf("cleaned %q", got)
	}
	if got := Clean(strings.Repeat("ä", 500)); len([]rune(got)) != 128 {
		t.Errorf("%d runes", len([]rune(got)))
	}
}

// FuzzMessage builds a message from accepted values and parses it: no value may
// become another header or body.
func FuzzMessage(f *testing.F) {
	f.Add("X-A", "b", "12025550123")
	f.Add("X-A", "b\r\nEvil: 1\r\n\r\nbody", "1@b")
	f.Add("X-A: c\r\nX-B", "ü", "*#")
	f.Fuzz(func(t *testing.T, name, value, number string) {
		if CheckHeader(name, value) != nil || CheckNumber("x", number) != nil {
			return
		}
		req := sip.NewRequest(sip.OPTIONS, sip.Uri{Scheme: "sip", User: EscapeUser(number), Host: "127.0.0.1"})
		req.AppendHeader(sip.NewHeader(name, value))
		req.SetBody(nil)
		msg, err := sip.ParseMessage([]byte(req.String()))
		if err != nil {
			// The library reads some names as headers, whose values it ignores.
			return
		}
		back, ok := msg.(*sip.Request)
		if !ok || len(back.Body()) != 0 || back.Recipient.User != EscapeUser(number) || back.Recipient.Host != "127.0.0.1" {
			t.Fatalf("%q %q %q became %q", name, value, number, req.String())
		}
		known := 0
		for _, h := range back.Headers() {
			if strings.EqualFold(h.Name(), name) || strings.EqualFold(h.Name(), "Content-Length") {
				known++
			}
		}
		if len(back.Headers()) != known && len(back.Headers()) > 2 && !strings.Contains(value, ",") {
			t.Fatalf("%q %q became %q", name, value, req.String())
		}
	})
}

func TestFilter(t *testing.T) {
	var f Filter
	udp := sip.TransportReadProps{Transport: "UDP"}
	head := "OPTIONS sip:a@b SIP/2.0\r\n"
	for text, pass := range map[string]bool{
		head + "Via: x\r\n\r\n":        true,
		"\r\n\r\n":                     true,
		"\r\n":                         true,
		head + "Via: x\r\n":            false,
		head + "X: y\nEvil: z\r\n\r\n": false,
		"GET / HTTP/1.1\r\n\r\n":       false,
		head + strings.Repeat("X: y\r\n", 70) + "\r\n":        false,
		head + "X: " + strings.Repeat("y", 5000) + "\r\n\r\n": false,
		head + "\r\n" + strings.Repeat("b", 17000):            false,
	} {
		got, err := f.Read(udp, []byte(text))
		if err != nil || (len(got) > 0) != pass {
			t.Errorf("%.40q of %d bytes: passed %v, %v", text, len(text), len(got) > 0, err)
		}
	}
	if n := f.Counts().Dropped; n != 6 {
		t.Errorf("%d dropped", n)
	}
	if got, _ := f.Read(sip.TransportReadProps{Transport: "TCP"}, []byte("half a li")); len(got) == 0 {
		t.Error("a piece of a stream was dropped")
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	guarded := NewLogHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	log := slog.New(guarded).With("caller", "Transport", "req", "INVITE sip:12025550123@x")
	const message = "INVITE sip:12025550123@x SIP/2.0\r\nAuthorization: Digest response=\"secret\"\r\n\r\n"
	for range 100 {
		log.Error("failed to parse", "data", message, "error", errors.New("line has no CRLF"))
	}
	log.Warn("fail to write", "error", errors.New(`fail to write request on init req="INVITE sip:12025550123@x"`), "n", 5)
	log.Warn("whole", "other", message)
	log.Info("not logged", "n", 1)
	text := out.String()
	for _, bad := range []string{"12025550123", "secret", "SIP/2.0", "not logged", "Digest"} {
		if strings.Contains(text, bad) {
			t.Errorf("the log holds %q:\n%s", bad, text)
		}
	}
	if n := strings.Count(text, "\n"); n != 3 || guarded.Unreadable() != 100 {
		t.Errorf("%d lines for %d failures:\n%s", n, guarded.Unreadable(), text)
	}
	if !strings.Contains(text, "…23") || !strings.Contains(text, "n=5") || !strings.Contains(text, "caller=Transport") {
		t.Errorf("the log lacks allowed attributes:\n%s", text)
	}
	late := slog.NewRecord(time.Now().Add(time.Hour), slog.LevelError, "failed to parse", 0)
	out.Reset()
	if err := guarded.Handle(t.Context(), late); err != nil || !strings.Contains(out.String(), "messages=100") {
		t.Errorf("an hour later: %q, %v", out.String(), err)
	}
	if guarded.Enabled(context.Background(), slog.LevelInfo) {
		t.Error("info is enabled")
	}
}

func TestListener(t *testing.T) {
	raw, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(raw, &Filter{}, nil)
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn, 2*maxPerPeer)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	var conns []net.Conn
	for range maxPerPeer {
		dial()
		conns = append(conns, <-accepted)
	}
	if _, err := dial().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("one connection too many: %v", err)
	}
	_, _ = conns[0].Close(), conns[0].Close()
	dial()
	late := (<-accepted).(*conn)
	late.since = time.Now().Add(-firstHeaderTimeout) // long ago, so that the source is forgotten
	if _, err := late.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent connection: %v", err)
	}
	for _, c := range conns {
		_ = c.Close()
	}
	_ = late.Close()
	if n, _ := l.Counts(); n != 0 {
		t.Errorf("%d connections are counted", n)
	}
}

// TestConfigureLibrary checks that the library's default logger is filtered too, whichever
// slog.Default is set.
func TestConfigureLibrary(t *testing.T) {
	ConfigureLibrary()
	ConfigureLibrary()
	var out bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	sip.DefaultLogger().With("callid", "12025550123@x").Error("failed for 12025550123", "req", "INVITE", "n", 5)
	sip.DefaultLogger().Info("not logged")
	if text := out.String(); strings.Contains(text, "12025550123") || strings.Contains(text, "INVITE") ||
		strings.Contains(text, "not logged") || !strings.Contains(text, "n=5") {
		t.Errorf("the log holds %q", text)
	}
}
