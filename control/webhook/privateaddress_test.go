package webhook_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// privateURLs lists URLs with private addresses, and URLs that only some parsers read as private addresses. PORT stands
// for a port on which a server listens on all addresses of this machine.
const privateURLs = `
https://127.0.0.1:PORT/             https://127.0.0.1:PORT/hook?x=1     https://127.0.0.2:PORT/             https://127.255.255.254:PORT/
https://127.1:PORT/                 https://127.0.1:PORT/               https://127.1.1.1:PORT/             https://0:PORT/
https://0.0.0.0:PORT/               https://0.0.0.1:PORT/               https://0000:PORT/                  https://2130706433:PORT/
https://0x7f000001:PORT/            https://0x7f.1:PORT/                https://0x7f.0x0.0x0.0x1:PORT/      https://0177.0.0.1:PORT/
https://017700000001:PORT/          https://127.0.0.01:PORT/            https://127.0.0.1.:PORT/            https://%31%32%37.0.0.1:PORT/
https://127。0。0。1:PORT/            https://①②⑦.0.0.1:PORT/             https://[::1]:PORT/                 https://[::]:PORT/
https://[0:0:0:0:0:0:0:1]:PORT/     https://[::ffff:127.0.0.1]:PORT/    https://[::ffff:7f00:1]:PORT/       https://[0:0:0:0:0:ffff:7f00:1]:PORT/
https://[::127.0.0.1]:PORT/         https://[::1%25lo]:PORT/            https://[64:ff9b::7f00:1]:PORT/     https://[64:ff9b:1::7f00:1]:PORT/
https://[2002:7f00:1::]:PORT/       https://[fe80::1]:PORT/             https://[fe80::1%25lo]:PORT/        https://[fd00::1]:PORT/
https://[fc00::1]:PORT/             https://[fec0::1]:PORT/             https://[ff02::1]:PORT/             https://localhost:PORT/
https://LOCALHOST:PORT/             https://localhost.:PORT/            https://localhost%00.example:PORT/  https://user@127.0.0.1:PORT/
https://example.com@127.0.0.1:PORT/ https://a:b@localhost:PORT/         https://127.0.0.1:PORT\@example.com https://127.0.0.1:PORT#@example.com
https://169.254.169.254/latest/     https://169.254.169.254.:80/        https://[fd00:ec2::254]/latest/     https://metadata.google.internal/
https://100.100.100.200/latest/     https://10.0.0.1:PORT/              https://172.16.0.1:PORT/            https://192.168.0.1:PORT/
https://100.64.0.1:PORT/            https://198.18.0.1:PORT/            https://224.0.0.1:PORT/             https://255.255.255.255:PORT/
http://127.0.0.1:PORT/              http://localhost:PORT/              http://[::1]:PORT/                  HTTP://127.0.0.1:PORT/
gopher://127.0.0.1:PORT/            file:///etc/passwd                  ftp://127.0.0.1:PORT/               //127.0.0.1:PORT/
https:127.0.0.1:PORT                https:///127.0.0.1:PORT/            https://127.0.0.1:PORT:80/          jar:https://127.0.0.1:PORT/!/`

// TestPrivateAddressesAreRefused checks that no request to privateURLs, and no redirect to them, reaches the server.
func TestPrivateAddressesAreRefused(t *testing.T) {
	p := newFixture(t)
	p.sender.AllowInsecure = false
	canary, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	var touched atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := canary.Accept()
			if err != nil {
				return
			}
			touched.Add(1)
			_ = c.Close()
		}
	}()
	port := fmt.Sprint(canary.Addr().(*net.TCPAddr).Port)
	urls := strings.Fields(strings.ReplaceAll(privateURLs, "PORT", port))
	if len(urls) < 60 {
		t.Fatalf("%d urls", len(urls))
	}
	for i, u := range urls {
		p.exec("INSERT INTO webhook_endpoints (id, org_id, url, secret, events) VALUES ($1, $2, $3, $4, '{call_ended}')", fmt.Sprintf("whe_%d", i), p.org, u, firstSecret)
	}
	p.insertEndedAtOnce(1)
	p.passTime(0)
	if n := p.value("SELECT count(*)::text FROM webhook_deliveries WHERE tries = 1 AND last_status IS NULL AND last_error <> ''"); n != fmt.Sprint(len(urls)) {
		t.Errorf("%s of %d refused", n, len(urls))
	}
	// With AllowInsecure, redirects are not followed either.
	insecure := newFixture(t)
	outer := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:"+port+"/", http.StatusPermanentRedirect))
	t.Cleanup(outer.Close)
	insecure.endpoints(outer.URL)
	insecure.insertEndedAtOnce(1)
	insecure.passTime(0)
	if s := insecure.value("SELECT last_status::text FROM webhook_deliveries"); s != "308" {
		t.Errorf("the redirect is %s", s)
	}
	_ = canary.Close()
	<-over
	if n := touched.Load(); n != 0 {
		t.Errorf("%d connections reached a private address", n)
	}
}
