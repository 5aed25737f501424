package sip

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/siptest"
)

func (l *env) addCarrier(t *testing.T, c *siptest.Carrier) *siptest.Carrier {
	t.Helper()
	c.Listen, c.Media = "127.0.0.1:0", l.media
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The UA closes first, so that the carrier answers its BYEs.
		end, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := errors.Join(l.ua.Close(end), c.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestFailover checks which failures lead to another proxy and which must not.
func TestFailover(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first     siptest.Script
		failsOver bool
	}{
		"503":               {siptest.Script{Ring: -1, Status: 503}, true},
		"503 Retry-After":   {siptest.Script{Ring: -1, Status: 503, Headers: map[string]string{"Retry-After": "30 (busy)"}}, true},
		"500":               {siptest.Script{Ring: -1, Status: 500}, true},
		"408":               {siptest.Script{Ring: -1, Status: 408}, true},
		"486":               {siptest.Script{Ring: -1, Status: 486}, false},
		"404":               {siptest.Script{Ring: -1, Status: 404}, false},
		"603":               {siptest.Script{Ring: -1, Status: 603}, false},
		"500 after it rang": {siptest.Script{Status: 500}, false},
		"408 after 183":     {siptest.Script{EarlyMedia: true, Status: 408}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newEnv(t, func(siptest.Invite) siptest.Script { return row.first })
			b := l.addCarrier(t, &siptest.Carrier{})
			target := l.target()
			target.Trunk.Backups = []string{b.Proxy()}
			start := time.Now()
			leg, err := l.ua.Dial(shortContext(t), target, nil)
			if row.failsOver != (err == nil) {
				t.Fatalf("dial: %v", err)
			}
			if got := b.Journal(); (len(got) == 1) != row.failsOver {
				t.Errorf("the second carrier saw %d calls", len(got))
			} else if row.failsOver {
				if got[0].ID != target.ID || got[0].CSeq != 2 || got[0].At.Sub(start) > 500*time.Millisecond {
					t.Errorf("%s with CSeq %d after %v", got[0].ID, got[0].CSeq, got[0].At.Sub(start))
				}
				_ = leg.Hangup(media.LocalHangup)
			}
		})
	}
}

// TestRetryAfter checks that a proxy is paused for its Retry-After.
func TestRetryAfter(t *testing.T) {
	l := newEnv(t, func(siptest.Invite) siptest.Script {
		return siptest.Script{Ring: -1, Status: 503, Headers: map[string]string{"Retry-After": "30"}}
	})
	b := l.addCarrier(t, &siptest.Carrier{})
	target := l.target()
	target.Trunk.Backups = []string{b.Proxy()}
	for range 3 {
		target.ID = l.target().ID
		leg := l.call(t, target)
		_ = leg.Hangup(media.LocalHangup)
	}
	if n, m := len(l.carrier.Journal()), len(b.Journal()); n != 1 || m != 3 {
		t.Errorf("%d calls at the paused proxy, %d at the other", n, m)
	}
	target.ID, target.Trunk.Backups = l.target().ID, nil // the BYE of the last call may still be on its way
	sent := false
	_, err := l.ua.Dial(shortContext(t), target, func(media.Progress) { sent = true })
	if causeOf(err) != media.Congestion || sent {
		t.Errorf("without another proxy: %v, sent %v", err, sent)
	}
}

// TestBlackhole checks that later calls avoid a silent proxy. The unanswered call is not repeated
// at another proxy, because it may ring.
func TestBlackhole(t *testing.T) {
	t.Parallel()
	l := newEnv(t, nil)
	silent := listenUDP(t, "127.0.0.1:0")
	b := l.addCarrier(t, &siptest.Carrier{})
	first := l.target()
	first.Trunk.Proxy = "sip:" + silent.LocalAddr().String() + ";transport=udp"
	first.Trunk.Backups = []string{b.Proxy()}
	first.RingTimeout = 6 * time.Second
	failed, sent := l.dialInBackground(t.Context(), first)
	<-sent
	for len(l.ua.ProxyStates()) == 0 || l.ua.ProxyStates()[0].Status != health.Down {
		select {
		case err := <-failed:
			t.Fatalf("ended before the trunk was marked down: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	second := l.target()
	second.Trunk = first.Trunk
	leg := l.call(t, second)
	_ = leg.Hangup(media.LocalHangup)
	if got := b.Journal(); len(got) != 1 || got[0].ID != second.ID {
		t.Errorf("the second carrier saw %+v", got)
	}
	if err := <-failed; causeOf(err) != media.NoAnswer && causeOf(err) != media.RouteError {
		t.Error(err)
	}
	if n := len(b.Journal()); n != 1 {
		t.Errorf("the call that was never answered went elsewhere")
	}
	// Close waits for a final response.
	invite := make([]byte, 2048)
	n, from, err := silent.ReadFrom(invite)
	if err != nil {
		t.Fatal(err)
	}
	busy := strings.Replace(answerTo(string(invite[:n]), silent.LocalAddr().String()), "SIP/2.0 200 OK", "SIP/2.0 486 Busy Here", 1)
	if _, err = silent.WriteTo([]byte(busy), from); err != nil {
		t.Error(err)
	}
	if err = l.ua.Close(shortContext(t)); err != nil {
		t.Error(err)
	}
}

// TestNoConnection checks that another proxy is tried if nothing could be sent.
func TestNoConnection(t *testing.T) {
	l := newEnv(t, nil)
	var lc net.ListenConfig
	closed, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	target := l.target()
	target.Trunk.Backups = []string{target.Trunk.Proxy}
	target.Trunk.Proxy = overTCP(closed.Addr().String())
	leg := l.call(t, target)
	_ = leg.Hangup(media.LocalHangup)
}

// TestProbes checks that OPTIONS shows when a proxy is down and when it is up again.
func TestProbes(t *testing.T) {
	var status atomic.Int64
	status.Store(503)
	l := newEnv(t, nil)
	b := l.addCarrier(t, &siptest.Carrier{OptionsStatus: func() int { return int(status.Load()) }})
	l.ua.SetTrunks([]media.Trunk{{Proxy: b.Proxy(), Backups: []string{"sip:127.0.0.1:9;transport=udp", "nonsense"}}, {Proxy: b.Proxy()}})
	l.ua.SetTrunks([]media.Trunk{{Proxy: b.Proxy()}})
	waitFor(t, func() bool { return len(l.ua.ProxyStates()) > 0 }, func() string { return "the proxy has no state" })
	if got := l.ua.ProxyStates()[0]; got.Status != health.Up {
		t.Errorf("%+v", got)
	}
	l.ua.SetTrunks(nil)
}

// TestRegister checks that the UA registers, refreshes and unregisters.
func TestRegister(t *testing.T) {
	t.Parallel()
	r := &siptest.Registrar{
		Challenge:  &siptest.Challenge{Realm: "carrier.example", Username: "acme", Password: "canary-secret"},
		MinExpires: 2 * time.Hour, MaxExpires: 2 * time.Second,
	}
	l := newEnv(t, nil)
	b := l.addCarrier(t, &siptest.Carrier{Registrar: r})
	trunk := media.Trunk{Proxy: b.Proxy(), Username: "acme", Password: "canary-secret", Register: true}
	l.ua.SetTrunks([]media.Trunk{trunk})
	wait := func(n int) []siptest.Binding {
		t.Helper()
		if err := b.Wait(shortContext(t), func([]siptest.Entry) bool { return len(r.Bindings()) >= n }); err != nil {
			t.Fatalf("%+v: %v", r.Bindings(), err)
		}
		return r.Bindings()
	}
	got := wait(2)
	if got[0].User != "acme" || got[0].Interval != 2*time.Second || !strings.Contains(got[0].Contact, l.ua.Addr().String()) {
		t.Errorf("%+v", got[0])
	}
	if after := got[1].At.Sub(got[0].At); after > 2*time.Second {
		t.Errorf("refreshed after %v, too late", after)
	}
	if regs := l.ua.Registrations(); len(regs) != 1 || regs[0].Until.IsZero() || regs[0].Err != nil {
		t.Errorf("%+v", regs)
	}
	l.ua.SetTrunks(nil)
	if got = r.Bindings(); got[len(got)-1].Interval != 0 {
		t.Errorf("did not unregister: %+v", got)
	}
	if regs := l.ua.Registrations(); len(regs) != 0 {
		t.Errorf("%+v", regs)
	}
}

// TestRegisterRefused checks that credentials go only to the trunk, and that the failure is
// reported.
func TestRegisterRefused(t *testing.T) {
	for name, row := range map[string]struct {
		registrar *siptest.Registrar
		want      string
	}{
		"foreign realm":  {&siptest.Registrar{Challenge: &siptest.Challenge{Realm: "evil.example", Username: "acme", Password: "p"}}, "foreign realm"},
		"wrong password": {&siptest.Registrar{Challenge: &siptest.Challenge{Realm: "carrier.example", Username: "acme", Password: "other"}}, "does not accept"},
		"forbidden":      {&siptest.Registrar{Status: 403}, "403"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newEnv(t, nil)
			b := l.addCarrier(t, &siptest.Carrier{Registrar: row.registrar})
			l.ua.SetTrunks([]media.Trunk{{Proxy: b.Proxy(), Username: "acme", Password: "p", Realm: "carrier.example", Register: true}})
			waitFor(t, func() bool {
				regs := l.ua.Registrations()
				return len(regs) == 1 && regs[0].Err != nil && strings.Contains(regs[0].Err.Error(), row.want)
			}, func() string { return fmt.Sprintf("want %q in %+v", row.want, l.ua.Registrations()) })
		})
	}
}

func certificate(t *testing.T, names ...string) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// TestTLS dials over TLS and hangs up from both sides. It checks that a carrier is refused if it
// cannot prove its name.
func TestTLS(t *testing.T) {
	cert, roots := certificate(t, "127.0.0.1")
	other, _ := certificate(t, "127.0.0.1")
	wrong, wrongRoots := certificate(t, "else.example")
	for name, row := range map[string]struct {
		certificate *tls.Certificate
		roots       *x509.CertPool
		ok          bool
	}{
		"proves its name": {cert, roots, true},
		"unknown root":    {other, roots, false},
		"another name":    {wrong, wrongRoots, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newEnvWith(t, &UA{TLS: endpoint.TLS{Roots: row.roots}}, nil)
			b := l.addCarrier(t, &siptest.Carrier{TLS: endpoint.TLS{Listen: "127.0.0.1:0", Certificate: row.certificate}})
			target := l.target()
			target.Trunk.Proxy = b.TLSProxy()
			target.Trunk.Encryption = media.Encrypted
			for range 2 { // the second call uses the same connection
				target.ID = l.target().ID
				leg, err := l.ua.Dial(shortContext(t), target, nil)
				if !row.ok {
					if causeOf(err) != media.RouteError {
						t.Fatalf("dial: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Wait(shortContext(t), func(all []siptest.Entry) bool { return len(all) > 0 && all[len(all)-1].Acked }); err != nil {
					t.Fatal(err)
				}
				_ = leg.Hangup(media.LocalHangup)
				if err := b.Wait(shortContext(t), func(all []siptest.Entry) bool {
					e := all[len(all)-1]
					return e.Cause == media.RemoteHangup && e.Acked && e.Transport == "TLS"
				}); err != nil {
					t.Errorf("%+v: %v", b.Journal(), err)
				}
			}
		})
	}
}

// TestNumberFormat checks the numbers of the INVITE in both formats. A dial prefix replaces the +.
func TestNumberFormat(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		plus         bool
		to, from     string
		number       string
		called, asks string
	}{
		"digits":        {false, "12025550123", "12025550100", "12025550123", "12025550123", "12025550100"},
		"as configured": {false, "12025550123", "+12025550100", "", "12025550123", "+12025550100"},
		"E.164":         {true, "12025550123", "12025550100", "12025550123", "+12025550123", "+12025550100"},
		"with + before": {true, "+12025550123", "+12025550100", "", "+12025550123", "+12025550100"},
		"dial prefix":   {true, "912025550123", "+12025550100", "12025550123", "912025550123", "+12025550100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newEnv(t, func(siptest.Invite) siptest.Script { return siptest.Script{Status: 486} })
			target := l.target()
			target.To, target.From, target.Number = row.to, row.from, row.number
			target.Trunk.Plus, target.Trunk.Asserted = row.plus, true
			_ = l.dialError(t, t.Context(), target, nil)
			got := l.carrier.Journal()[0]
			if got.To != row.called || got.From != row.asks || !strings.Contains(got.Headers["P-Asserted-Identity"], "sip:"+row.asks+"@") {
				t.Errorf("the carrier got %s from %s, %q", got.To, got.From, got.Headers["P-Asserted-Identity"])
			}
		})
	}
}
