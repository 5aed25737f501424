package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/safedial"
)

func TestRetryDelay(t *testing.T) {
	want := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	for i, w := range want {
		for dice, share := range map[float64]float64{0: 0.8, 0.5: 1, 1: 1.2} {
			got, more := RetryDelay(i+1, dice)
			if diff := got - time.Duration(float64(w)*share); !more || diff.Abs() > time.Millisecond {
				t.Errorf("after attempt %d, dice %v: %v %v", i+1, dice, got, more)
			}
		}
	}
	if _, more := RetryDelay(12, 0.5); more {
		t.Error("RetryDelay allows a thirteenth attempt")
	}
	if _, more := RetryDelay(-1, 0.5); more {
		t.Error("RetryDelay allows an attempt before the first")
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		n, status int
		asked     time.Duration
		want      verdict
	}{
		{1, 200, 0, verdict{delivered: true}},
		{10, 299, 0, verdict{delivered: true}},
		{1, 301, 0, verdict{wait: 5 * time.Second}},
		{1, 0, 0, verdict{wait: 5 * time.Second}},
		{2, 500, 0, verdict{wait: 30 * time.Second}},
		{1, 410, 0, verdict{gone: true, dead: true}},
		{12, 500, 0, verdict{dead: true}},
		{1, 429, 0, verdict{wait: 5 * time.Second, throttle: 5 * time.Second}},
		{1, 502, 0, verdict{wait: 5 * time.Second, throttle: 5 * time.Second}},
		{1, 504, 0, verdict{wait: 5 * time.Second, throttle: 5 * time.Second}},
		{1, 429, time.Minute, verdict{wait: time.Minute, throttle: time.Minute}},
		{1, 503, time.Minute, verdict{wait: time.Minute, throttle: time.Minute}},
		{5, 503, time.Minute, verdict{wait: 30 * time.Minute, throttle: time.Minute}},
	} {
		if got := judge(tt.n, tt.status, tt.asked, 0.5); got != tt.want {
			t.Errorf("attempt %d, status %d, asked %v: %+v, want %+v", tt.n, tt.status, tt.asked, got, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "120": 2 * time.Minute, "999999999": 24 * time.Hour,
		"Wed, 01 Jul 2026 12:01:30 GMT": 90 * time.Second, "Wed, 01 Jul 2020 12:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestSignatureVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		key, err := signingKey(media.Secret(secret))
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		keyring{key}.sign(h, rapid.StringMatching(`evt_[0-9A-Z]{26}`).Draw(t, "id"), time.Now(), body)
		wh, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := wh.Verify(body, h); err != nil {
			t.Fatalf("a valid signature was refused: %v", err)
		}
		if err := wh.Verify(append(body, 'x'), h); err == nil {
			t.Fatal("a changed body was accepted")
		}
	})
}

func TestSecrets(t *testing.T) {
	for _, bad := range []media.Secret{"", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "whsec_", "whsec_c2hvcnQ=", "whsec_!!", media.Secret("whsec_" + string(make([]byte, 100)))} {
		if _, err := signingKey(bad); err == nil {
			t.Errorf("a secret of %d characters was accepted", len(bad))
		}
	}
}

func TestCheckURL(t *testing.T) {
	for url, want := range map[string][2]bool{ // whether the URL is valid without and with insecure
		"https://example.com/hook": {true, true}, "http://example.com/hook": {false, true}, "https://user:pw@example.com/": {false, false},
		"ftp://example.com": {false, false}, "https://": {false, false}, "": {false, false}, "https:///x": {false, false}, "://": {false, false},
	} {
		if CheckURL(url, false) == nil != want[0] || CheckURL(url, true) == nil != want[1] {
			t.Errorf("%s: %v, insecure %v", url, CheckURL(url, false), CheckURL(url, true))
		}
	}
}

// TestErrorTextsAreStorable checks that the database accepts the text of every error.
func TestErrorTextsAreStorable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := reason(&url.Error{Op: "Post", URL: "https://host/canary-token", Err: errors.New(string(rapid.SliceOfN(rapid.Byte(), 0, 700).Draw(t, "error")))})
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > 200 || strings.Contains(text, "canary-token") {
			t.Errorf("%q", text)
		}
	})
}

// TestReason checks that the reasons name the host of the endpoint, neither another address nor the token in its URL.
func TestReason(t *testing.T) {
	lookup := func(missing bool) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "hooks.example.com", Server: "10.0.0.53:53", IsNotFound: missing}}
	}
	dialed := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7)}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 8), Port: 443}, Err: err}
	}
	for want, err := range map[string]error{
		"DNS has no address for hooks.example.com":                                                lookup(true),
		"DNS lookup of hooks.example.com failed":                                                  lookup(false),
		"connection to hooks.example.com:443 failed: connection refused":                          dialed(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"connection to hooks.example.com:443 failed: connection reset by peer":                    fmt.Errorf("broken: %w", &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
		"connection to hooks.example.com:443 failed: tls: handshake failure":                      &net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")},
		"no connection to hooks.example.com:443 within 10 s":                                      dialed(os.ErrDeadlineExceeded),
		"no response from hooks.example.com:443 within 15 s":                                      context.DeadlineExceeded,
		"the address of hooks.example.com is not public":                                          dialed(fmt.Errorf("10.0.0.8:443: %w", safedial.ErrNotPublic)),
		"hooks.example.com:443 responds without TLS":                                              http.ErrSchemeMismatch,
		"hooks.example.com:443 closed the connection without a response":                          io.EOF,
		"TLS certificate of hooks.example.com not valid: certificate signed by unknown authority": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
	} {
		if got := reason(&url.Error{Op: "Post", URL: "https://hooks.example.com/token", Err: err}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReasonOfServers checks the reasons for servers that refuse or close the connection, have no TLS or an untrusted certificate.
func TestReasonOfServers(t *testing.T) {
	client := safedial.Rules{Anywhere: true}.Client()
	t.Cleanup(client.CloseIdleConnections)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}))
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	for _, s := range []*httptest.Server{plain, secure} {
		t.Cleanup(s.Close)
	}
	at := plain.Listener.Addr().String()
	stopped := httptest.NewServer(http.NotFoundHandler())
	stopped.Close()
	for target, want := range map[string]string{
		stopped.URL:     "connection to " + stopped.Listener.Addr().String() + " failed: connection refused",
		plain.URL:       at + " closed the connection without a response",
		"https://" + at: at + " responds without TLS",
		secure.URL:      "TLS certificate of 127.0.0.1 not valid: certificate signed by unknown authority",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err == nil {
			resp.Body.Close()
			t.Fatalf("%s responds %d", target, resp.StatusCode)
		}
		if got := reason(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
