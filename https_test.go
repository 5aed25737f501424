package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/config"
)

// TestHTTPS runs a server with a certificate and the socket of systemd, and sends requests over HTTP/2 and plain HTTP. After
// SIGHUP new connections must get the new certificate.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	s := newProcess(t, "127.0.0.1:9")
	dir, write := fileWriter(t)
	cert, key := newCertificate(t)
	write("cert", cert)
	write("key", key)
	states := systemd(t, filepath.Join(dir, "notify"))
	at, plain := strings.TrimPrefix(s.api.URL, "http://"), "127.0.0.1:"+freePort(t)
	public := "https://" + at
	s.environ = append(s.environ, "PARLEY_PUBLIC_URL="+public, "PARLEY_HTTP_TLS_CERT="+dir+"/cert", "PARLEY_HTTP_TLS_KEY="+dir+"/key",
		"PARLEY_HTTP_REDIRECT_ADDR="+plain, "PARLEY_LOG_FORMAT=json", "PARLEY_LOG_LEVEL=info", "NOTIFY_SOCKET="+dir+"/notify")
	cmd := s.serve()
	states("READY=1")
	client := httpsClient(t, cert)
	resp := getWith(t, client, public+"/readyz")
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK || resp.Header.Get("Strict-Transport-Security") != "max-age=31536000" {
		t.Errorf("got HTTP/%d, %s, %v", resp.ProtoMajor, resp.Status, resp.Header)
	}
	var out, errs bytes.Buffer
	e := &env{Context: t.Context(), out: &out, errs: &errs, environ: []string{"PARLEY_HTTP_ADDR=" + at, "PARLEY_HTTP_TLS_CERT=x"}}
	if code := run(e, []string{"health", "--ready"}); code != 0 {
		t.Errorf("parley health: exit code %d: %s", code, &errs)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp = getWith(t, client, "http://"+plain+"/v1/calls?limit=1")
	if resp.StatusCode != http.StatusPermanentRedirect || resp.Header.Get("Location") != public+"/v1/calls?limit=1" {
		t.Errorf("plain HTTP: %s to %s", resp.Status, resp.Header.Get("Location"))
	}
	posted, err := client.Post("http://"+plain+"/v1/calls/phone", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = posted.Body.Close()
	if posted.StatusCode != http.StatusForbidden {
		t.Errorf("POST over plain HTTP: %s", posted.Status)
	}

	write("key", []byte("junk"))
	s.sendSIGHUP(cmd)
	states("RELOADING=1", "READY=1")
	s.waitLog(`"msg":"failed to reload; the settings are unchanged","err":"PARLEY_HTTP_TLS_CERT: `)
	before := peerCertificate(t, at)
	cert, key = newCertificate(t)
	write("cert", cert)
	write("key", key)
	s.sendSIGHUP(cmd)
	states("RELOADING=1", "READY=1")
	if slices.Equal(before, peerCertificate(t, at)) {
		t.Error("the certificate is still the first one")
	}
	s.end(cmd)
	states("STOPPING=1")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.log {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line is not JSON: %s", line)
		}
	}
}

// systemd listens at the socket. The function returned waits for states of the process, in this order.
func systemd(t *testing.T, socket string) func(want ...string) {
	t.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(t.Context(), "unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return func(want ...string) {
		t.Helper()
		for _, w := range want {
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			b := make([]byte, 1000)
			n, _, err := conn.ReadFrom(b)
			if state, _, _ := strings.Cut(string(b[:n]), "\n"); err != nil || state != w {
				t.Fatalf("systemd got %q, %v, want %q", b[:n], err, w)
			}
		}
	}
}

// httpsClient returns a client that trusts a certificate.
func httpsClient(t *testing.T, cert []byte) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cert) {
		t.Fatal("no certificate")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

// getWith returns the response to a GET, without its body.
func getWith(t *testing.T, client *http.Client, url string) http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return *resp
}

// TestHTTPSConfig checks that errors about invalid combinations name the setting.
func TestHTTPSConfig(t *testing.T) {
	certPEM, keyPEM := newCertificate(t)
	cert, key := writeFile(t, "cert.pem", string(certPEM)), writeFile(t, "key.pem", string(keyPEM))
	for name, row := range map[string]struct {
		environ []string
		want    string
	}{
		"plain":               {nil, ""},
		"a certificate":       {[]string{"PARLEY_HTTP_TLS_CERT=" + cert, "PARLEY_HTTP_TLS_KEY=" + key}, ""},
		"no key":              {[]string{"PARLEY_HTTP_TLS_CERT=" + cert}, "PARLEY_HTTP_TLS_CERT and PARLEY_HTTP_TLS_KEY: one is missing"},
		"ACME":                {[]string{"PARLEY_HTTP_ACME=on", "PARLEY_PUBLIC_URL=https://calls.example.com"}, ""},
		"ACME, plain URL":     {[]string{"PARLEY_HTTP_ACME=on", "PARLEY_PUBLIC_URL=http://calls.example.com"}, "PARLEY_HTTP_ACME needs"},
		"ACME, IP address":    {[]string{"PARLEY_HTTP_ACME=on", "PARLEY_PUBLIC_URL=https://192.0.2.1"}, "PARLEY_HTTP_ACME needs"},
		"ACME and files":      {[]string{"PARLEY_HTTP_ACME=on", "PARLEY_PUBLIC_URL=https://a.example", "PARLEY_HTTP_TLS_CERT=" + cert}, "PARLEY_HTTP_ACME and"},
		"email without ACME":  {[]string{"PARLEY_HTTP_ACME_EMAIL=ops@example.com"}, "need PARLEY_HTTP_ACME=on"},
		"no email":            {[]string{"PARLEY_HTTP_ACME_EMAIL=ops"}, "accepted: an email address"},
		"redirection, no TLS": {[]string{"PARLEY_HTTP_REDIRECT_ADDR=:80", "PARLEY_PUBLIC_URL=https://a.example"}, "PARLEY_HTTP_REDIRECT_ADDR needs"},
		"log format":          {[]string{"PARLEY_LOG_FORMAT=xml"}, "accepted: text or json"},
	} {
		c, err := config.Load("", row.environ)
		if err == nil {
			_, err = c.HTTPTLS.Load(c.PublicURL)
		}
		if (err != nil) != (row.want != "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

func TestLocalAddr(t *testing.T) {
	for addr, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80", "192.0.2.1:80": "192.0.2.1:80", "a.example:80": "a.example:80",
	} {
		if got := localAddr(addr); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
}

func TestRedirection(t *testing.T) {
	for request, want := range map[string]string{
		"/v1/calls?limit=1&q=a%2Fb": "https://calls.example.com/v1/calls?limit=1&q=a%2Fb",
		"//other.example/%2e":       "https://calls.example.com//other.example/%2e",
		"http:.other.example":       "https://calls.example.com/",
		"http://other.example/x":    "https://calls.example.com/x",
	} {
		u, err := url.ParseRequestURI(request)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		redirectTo("https://calls.example.com/").ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: u})
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}

func TestNodeName(t *testing.T) {
	for name, valid := range map[string]bool{"parley-0": true, "a.example": true, "a b": false, "a:b": false, strings.Repeat("a", 254): false} {
		c, err := config.Load("", []string{"PARLEY_NODE_NAME=" + name})
		if (err == nil) != valid || valid && c.NodeName != name {
			t.Errorf("%q: %v", name, err)
		}
	}
}
