package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/siptest"
)

// canary is a trunk's password. It must never be printed.
const canary = "canary-of-a-password"

// carrier starts a carrier with scripted answers.
func carrier(t testing.TB, c *siptest.Carrier) *siptest.Carrier {
	t.Helper()
	c.Listen = "127.0.0.1:0"
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// listenFor returns a silent callee that hangs up after d.
func listenFor(d time.Duration) func(context.Context, media.Leg) {
	return func(ctx context.Context, _ media.Leg) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}

func (srv *server) parley(t testing.TB, args ...string) (code int, out, errs string) {
	t.Helper()
	return srv.parleyAs(t, nil, args...)
}

// parleyAs runs a command with additional settings.
func (srv *server) parleyAs(t testing.TB, environ []string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	environ = append([]string{"PARLEY_DATA_DIR=" + srv.config.DataDir}, environ...)
	code = run(&env{Context: t.Context(), out: &o, errs: &e, environ: environ}, args)
	return code, o.String(), e.String()
}

// applyTrunk changes the trunk of the demo by applying an operator's file.
func (srv *server) applyTrunk(t testing.TB, keys string) {
	t.Helper()
	srv.applyFile(t, fmt.Sprintf("organizations: [{name: demo, trunks: [{name: demo, %s}]}]", keys))
}

func (srv *server) applyFile(t testing.TB, text string) {
	t.Helper()
	if code, _, errs := srv.parley(t, "apply", "-f", writeFile(t, "file.yaml", text)); code != 0 {
		t.Fatalf("apply exits with %d: %s", code, errs)
	}
}

type apiCall struct {
	CallID  string                `json:"call_id"`
	Status  string                `json:"status"`
	Reason  string                `json:"disconnection_reason"`
	Quality *control.AudioQuality `json:"quality"`
}

func callAndWait(t *testing.T, api *demo.Client) apiCall {
	t.Helper()
	id := requestCall(t, api, demo.Number)
	waitEnded(t, api, id)
	return readCall(t, api, id)
}

// eventually waits up to 10 s for a condition.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	eventuallyWithin(t, 10*time.Second, what, is)
}

// eventuallyWithin waits for a condition for the time longest.
func eventuallyWithin(t testing.TB, longest time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(longest)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timed out: %s", what)
		}
	}
}

func (srv *server) waitTrace(t *testing.T, id string) string {
	t.Helper()
	text := ""
	eventually(t, "parley call trace "+id, func() bool {
		code, out, _ := srv.parley(t, "call", "trace", id)
		text = out
		return code == 0
	})
	return text
}

// TestCarrier places a call on a trunk with two proxies. The first proxy refuses the call, and the second proxy
// requires registration. The test checks quality, trace and metrics.
func TestCarrier(t *testing.T) {
	t.Parallel()
	full := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Ring: -1, Status: http.StatusServiceUnavailable}
	}})
	registrar := &siptest.Registrar{Challenge: &siptest.Challenge{Realm: "carrier.example", Username: "acme", Password: canary}}
	open := carrier(t, &siptest.Carrier{Registrar: registrar, Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{
			Challenge: &siptest.Challenge{Realm: "carrier.example", Username: "acme", Password: canary, Proxy: true},
			Status:    http.StatusOK, Talk: listenFor(1500 * time.Millisecond),
		}
	}})
	srv, api := startServer(t, full.Addr().String())
	srv.applyTrunk(t, fmt.Sprintf(`proxy: %q, backups: [%q], username: acme, password: %s, realm: carrier.example, register: true,
		codecs: [pcma], asserted_identity: true, headers: {X-Customer: "acme 7"}`, full.Proxy(), open.Proxy(), canary))
	eventually(t, "a registration", func() bool { return len(registrar.Bindings()) > 0 })

	call := callAndWait(t, api)
	if call.Status != "ended" || call.Reason != "callee_hangup" {
		t.Errorf("the call is %s, %s", call.Status, call.Reason)
	}
	if q := call.Quality; q == nil || q.Codec == nil || *q.Codec != "PCMA" || q.MOS == nil || *q.MOS < 4 ||
		q.Received.Packets == nil || *q.Received.Packets < 50 || q.Received.JitterMS == nil {
		t.Errorf("quality %+v", q)
	}
	took := open.Journal()
	if n := len(took); n != 2 || took[n-1].Headers["X-Customer"] != "acme 7" || !strings.Contains(took[n-1].Headers["P-Asserted-Identity"], "12025550100") {
		t.Errorf("the carrier received %+v", took)
	}

	srv.checkTrace(t, call.CallID, full.Addr().String(), open.Addr().String())
	text := fetch(t, srv.http.metricsURL())
	for _, want := range []string{
		`parley_sip_invites_total{status="503"} 1`, `parley_sip_invites_total{status="200"} 1`, `parley_sip_legs_ended_total{cause="remote"} 1`,
		`parley_rtp_mos_count{direction="received"} 1`, `parley_sip_registers_total{result="ok"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in /metrics", want)
		}
	}
	if strings.Contains(text, canary) {
		t.Error("/metrics contains the password")
	}

	srv.applyTrunk(t, "register: false")
	eventually(t, "an unregistration", func() bool { all := registrar.Bindings(); return all[len(all)-1].Interval == 0 })
}

// checkTrace compares the trace of a call with the messages that were sent, and checks that the trace contains no
// secret.
func (srv *server) checkTrace(t *testing.T, id, first, second string) {
	t.Helper()
	text := srv.waitTrace(t, id)
	if strings.Contains(text, canary) || !strings.Contains(text, "sip:"+strings.TrimPrefix(demo.Number, "+")) {
		t.Errorf("the trace lacks the number or contains the password:\n%s", text)
	}
	row := regexp.MustCompile(`(?m)^ +\+\d+\.\d{3}  ([→←])  (\S+)/UDP +(\S+)`)
	var got []string
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		if m[3] == "100" {
			continue // these messages are optional
		}
		at := map[string]string{first: "first", second: "second"}[m[2]]
		got = append(got, m[1]+" "+at+" "+m[3])
	}
	want := []string{
		"→ first INVITE", "← first 503", "→ second INVITE", "← second 407", "→ second INVITE", "← second 180", "← second 200", "→ second ACK", "← second BYE", "→ second 200",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the trace is %q, want %q:\n%s", got, want, text)
	}
	columns := map[int]bool{}
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "127.0.0.1:"); i >= 0 {
			columns[i] = true
		}
	}
	if len(columns) != 1 {
		t.Errorf("the columns are not aligned:\n%s", text)
	}

	code, out, errs := srv.parley(t, "call", "trace", "--json", id)
	var rungs []callview.Rung
	if err := json.Unmarshal([]byte(out), &rungs); err != nil || code != 0 || len(rungs) < len(want) || strings.Contains(out, canary) {
		t.Errorf("--json exits with %d, %v: %s%s", code, err, out, errs)
	}
	if code, out, errs = srv.parley(t, "call", "trace", "call_none"); code != 1 || out != "" || !strings.Contains(errs, "call_none: call_not_found") {
		t.Errorf("unknown call: exit %d, %q, %q", code, out, errs)
	}
}

// TestTraceOfBusyCall checks that an unanswered call has a trace but no audio quality.
func TestTraceOfBusyCall(t *testing.T) {
	t.Parallel()
	busy := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 486, Reason: "Busy Here"}
	}})
	srv, api := startServer(t, busy.Addr().String())
	call := callAndWait(t, api)
	if call.Status != "failed" || call.Reason != "busy" || call.Quality != nil {
		t.Errorf("%+v", call)
	}
	text := srv.waitTrace(t, call.CallID)
	for _, want := range []string{"INVITE sip:", "486 Busy Here"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestRealmIsStored checks that the realm of a carrier's challenge is stored in the database, and that apply warns
// about a trunk without a realm.
func TestRealmIsStored(t *testing.T) {
	t.Parallel()
	inviteCounter := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Status: 486, Challenge: &siptest.Challenge{Realm: "carrier.example", Username: "u", Password: "p"}}
	}})
	srv, api := startServer(t, inviteCounter.Addr().String())
	srv.applyTrunk(t, fmt.Sprintf("proxy: %q, username: u, password: p", inviteCounter.Proxy()))
	if call := callAndWait(t, api); call.Reason != "busy" {
		t.Errorf("%+v", call)
	}
	eventually(t, "the stored realm", func() bool {
		realm, err := trunks.Realm(t.Context(), srv.db.Pool, inviteCounter.Proxy())
		return err == nil && realm == "carrier.example"
	})
}

// TestCarrierOverTLS places a signed call with TLS and SRTP.
func TestCarrierOverTLS(t *testing.T) {
	t.Parallel()
	certPEM, keyPEM := newCertificate(t)
	cert, key := writeFile(t, "cert", string(certPEM)), writeFile(t, "key", string(keyPEM))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	safe := carrier(t, &siptest.Carrier{
		TLS: endpoint.TLS{Listen: "127.0.0.1:0", Certificate: &pair},
		Answer: func(siptest.Invite) siptest.Script {
			return siptest.Script{Status: http.StatusOK, Talk: listenFor(time.Second)}
		},
	})
	srv, api := startServer(t, "127.0.0.1:9", func(c *config.Config) {
		c.SIPTLS = config.TLSFiles{Addr: "127.0.0.1:0", Cert: cert, Key: key, CA: cert}
		c.Stir = config.Stir{Key: key, Cert: cert, X5U: "https://cert.example/a.pem"}
	})
	srv.applyTrunk(t, fmt.Sprintf(`proxy: %q, encryption: srtp, attest: {"+12025550100": A}, subgroups: [{name: default, dial_prefix: "9"}]`, safe.TLSProxy()))
	eventually(t, "an attestation", func() bool { return srv.trunkReconciler.Attest("+12025550100") == "A" })
	call := callAndWait(t, api)
	if call.Status != "ended" || call.Quality == nil || call.Quality.Received.Packets == nil || *call.Quality.Received.Packets < 20 {
		t.Errorf("%+v", call)
	}
	took := safe.Journal()
	if len(took) != 1 || took[0].Transport != "TLS" || !strings.HasPrefix(took[0].To, "9") || !strings.Contains(took[0].Headers["Identity"], "info=<https://cert.example/a.pem>") {
		t.Fatalf("the carrier took %+v", took)
	}
	if text := srv.waitTrace(t, call.CallID); !strings.Contains(text, "/TLS") || !strings.Contains(text, "RTP/SAVP") || strings.Contains(text, "inline:") {
		t.Errorf("the trace lacks TLS or SRTP, or contains a key:\n%s", text)
	}
	text := fetch(t, srv.http.metricsURL())
	if !strings.Contains(text, "parley_srtp_unauthenticated_packets_total 0\n") {
		t.Error("some packets failed authentication")
	}
}

// TestApplyRejectsInvalidTrunks checks that apply rejects a trunk through which no call is possible.
func TestApplyRejectsInvalidTrunks(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	for keys, want := range map[string]string{
		`proxy: "sip:a.example;transport=carrier-pigeon"`:        "the transport must be udp, tcp or tls",
		`proxy: "sip:a.example", backups: ["sip:b:99999"]`:       "sip:b:99999",
		`proxy: "sip:[2001:db8::7]"`:                             "2001:db8::7 is an IPv6 address, and SIP uses IPv4 only",
		`proxy: "sip:a.example", backups: ["sip:[::1]:5060"]`:    "IPv6 address",
		`proxy: "sip:a.example", headers: {Via: there}`:          "header Via cannot be set",
		`proxy: "sip:a.example", headers: {X-A: "b\r\nEvil: c"}`: "control character",
		`proxy: "sip:a.example", headers: {"X A": b}`:            "header name",
	} {
		file := writeFile(t, "trunk.yaml", "organizations: [{name: a, trunks: [{name: x, "+keys+"}]}]")
		var out bytes.Buffer
		code := run(&env{Context: t.Context(), out: &out, errs: &out, environ: []string{"PARLEY_DATA_DIR=" + dir}}, []string{"apply", "-f", file})
		if code != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d, %s", keys, code, out.String())
		}
	}
}

// TestApplyWarns checks that apply warns about settings that are allowed but not recommended, and still applies them.
func TestApplyWarns(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	file := writeFile(t, "trunk.yaml", "organizations: [{name: a, trunks: [{name: x, proxy: \"sip:a.example\", username: u, password: "+canary+"}]}]")
	var out bytes.Buffer
	code := run(&env{Context: t.Context(), out: &out, errs: &out, environ: []string{"PARLEY_DATA_DIR=" + dir}}, []string{"apply", "-f", file})
	if code != 0 || !strings.HasPrefix(out.String(), `warning: trunk "x" has a username and no realm`) ||
		!strings.Contains(out.String(), "applied organizations: 1") || strings.Contains(out.String(), canary) {
		t.Errorf("exit %d, %s", code, out.String())
	}
}
