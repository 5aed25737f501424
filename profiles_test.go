package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/siptest"
)

// A sippCarrier is a scenario in which sipp behaves as a carrier documents: it refuses the INVITEs that the carrier refuses.
type sippCarrier struct {
	// challenge is the status and the header with which sipp challenges the first INVITE. Empty means no challenge.
	challenge string
	// needs lists what an INVITE must contain, and how sipp refuses an INVITE that lacks it.
	needs []sippNeed
	// digest makes sipp verify the password of the user acme.
	digest bool
	// ringing is the part of the scenario between the INVITE and the 200.
	ringing string
	// answer has further headers of the 200. ack is a regular expression that the ACK must match.
	answer, ack string
	// talking is the part of the scenario between the ACK and the carrier's BYE.
	talking string
}

// A sippNeed is a regular expression for the INVITE, and the response to an INVITE that does not match it.
type sippNeed struct{ pattern, refusal string }

// sippHead has the headers that every response of sipp begins with.
const sippHead = `[last_Via:]
[last_From:]
[last_To:];tag=[pid]sipp[call_number]
[last_Call-ID:]
[last_CSeq:]
`

// sippAnswer begins the 200 of the INVITE. It repeats the headers of the INVITE from variables, because the last request that
// sipp received may be a PRACK.
const sippAnswer = `<send retrans="500"><![CDATA[
SIP/2.0 200 OK
Via:[$via]
From:[$from]
To:[$to];tag=[pid]sipp[call_number]
[last_Call-ID:]
CSeq:[$cseq]
`

const sippContact = "Contact: <sip:[local_ip]:[local_port];transport=[transport]>\n"

const sippSDP = `Content-Type: application/sdp
Content-Length: [len]

v=0
o=carrier 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0 101
a=rtpmap:0 PCMU/8000
a=rtpmap:101 telephone-event/8000

`

func sippSend(status, headers, body string) string {
	if body == "" {
		body = "Content-Length: 0\n\n"
	}
	if !strings.Contains(headers, "Contact:") {
		headers += sippContact
	}
	return "<send><![CDATA[\nSIP/2.0 " + status + "\n" + sippHead + headers + body + "]]></send>\n"
}

// scenario returns the file for sipp. sipp sends back the audio that it receives.
func (c sippCarrier) scenario() string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="ISO-8859-1" ?>
<scenario name="carrier">
<recv request="OPTIONS" optional="true" next="options"/>
`)
	used := "contact,from,to,via,cseq"
	learn := `<ereg regexp="sip:[^;&gt;]*" search_in="hdr" header="Contact:" check_it="true" assign_to="contact"/>
<ereg regexp=".*" search_in="hdr" header="From:" check_it="true" assign_to="from"/>
<ereg regexp=".*" search_in="hdr" header="To:" check_it="true" assign_to="to"/>
<ereg regexp=".*" search_in="hdr" header="Via:" check_it="true" assign_to="via"/>
<ereg regexp=".*" search_in="hdr" header="CSeq:" check_it="true" assign_to="cseq"/>
`
	for i, n := range c.needs {
		learn += fmt.Sprintf("<ereg regexp=\"%s\" search_in=\"msg\" assign_to=\"need%d\"/>\n", n.pattern, i)
	}
	if c.digest {
		learn += `<verifyauth assign_to="valid" username="acme" password="` + canary + `"/>` + "\n"
	}
	if c.challenge != "" {
		code, header, _ := strings.Cut(c.challenge, " ")
		b.WriteString(`<recv request="INVITE"/>` + "\n" + sippSend("100 Trying", "", "") +
			sippSend(code+" Authentication Required", header+"\n", "") + `<recv request="ACK"/>` + "\n")
	}
	b.WriteString(`<recv request="INVITE"><action>` + learn + "</action></recv>\n")
	if c.digest {
		b.WriteString(`<nop test="valid" next="valid"/>` + sippSend("403 Forbidden", "", "") +
			`<recv request="ACK" next="end"/><label id="valid"/>` + "\n")
	}
	for i, n := range c.needs {
		fmt.Fprintf(&b, "<nop test=\"need%d\" next=\"has%d\"/>%s<recv request=\"ACK\" next=\"end\"/><label id=\"has%d\"/>\n",
			i, i, sippSend(n.refusal, "", ""), i)
	}
	ack := ""
	if c.ack != "" {
		ack = fmt.Sprintf(`<action><ereg regexp="%s" search_in="msg" check_it="true" assign_to="ack"/></action>`, c.ack)
		used += ",ack"
	}
	answer := c.answer
	if !strings.Contains(answer, "Contact:") {
		answer += sippContact
	}
	b.WriteString(c.ringing + sippAnswer + answer + sippSDP + "]]></send>\n" +
		`<recv request="ACK">` + ack + "</recv>\n" + c.talking + `<pause milliseconds="2500"/>
<send retrans="500"><![CDATA[
BYE [$contact] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From:[$to];tag=[pid]sipp[call_number]
To:[$from]
Call-ID: [call_id]
CSeq: 9 BYE
Reason: Q.850;cause=16;text="Normal call clearing"
Max-Forwards: 70
Content-Length: 0

]]></send>
<recv response="200" next="end"/>
<label id="options"/>
` + sippSend("200 OK", "", "") + `<label id="end"/>
<Reference variables="` + used + `"/>
</scenario>
`)
	return b.String()
}

// start runs sipp until the test ends, and returns its address. failed returns the errors that sipp has reported.
func (c sippCarrier) start(t *testing.T) (addr string, failed func() string) {
	t.Helper()
	program, err := exec.LookPath("sipp")
	if err != nil {
		t.Skip("sipp is not installed (apt-get install sip-tester)")
	}
	dir := t.TempDir()
	file, errs := filepath.Join(dir, "carrier.xml"), filepath.Join(dir, "errors")
	if err := os.WriteFile(file, []byte(c.scenario()), 0o600); err != nil {
		t.Fatal(err)
	}
	port := mediatest.FreePort(t)
	cmd := exec.CommandContext(t.Context(), program, "-sf", file, "-i", "127.0.0.1", "-p", strconv.Itoa(port),
		"-mp", strconv.Itoa(mediatest.FreePort(t)), "-rtp_echo", "-t", "u1", "-nostdin",
		"-watchdog_minor_threshold", "60000", "-watchdog_major_threshold", "60000", // a slow machine is no error
		"-trace_err", "-error_file", errs)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "127.0.0.1:" + strconv.Itoa(port), func() string {
		text, _ := os.ReadFile(errs)
		return string(text)
	}
}

// sippPRACK sends a reliable 183 (RFC 3262).
const sippPRACK = `<send retrans="500"><![CDATA[
SIP/2.0 183 Session Progress
` + sippHead + `Require: 100rel
RSeq: 1
` + sippContact + sippSDP + `]]></send>
<recv request="PRACK"/>
<send><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0

]]></send>
`

// sippRefresh is a re-INVITE with which the carrier refreshes the session (RFC 4028).
const sippRefresh = `<pause milliseconds="500"/>
<send retrans="500"><![CDATA[
INVITE [$contact] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From:[$to];tag=[pid]sipp[call_number]
To:[$from]
Call-ID: [call_id]
CSeq: 5 INVITE
Supported: timer
Session-Expires: 120;refresher=uac
Max-Forwards: 70
` + sippContact + sippSDP + `]]></send>
<recv response="100" optional="true"/>
<recv response="200"><action><ereg regexp="refresher=uac" search_in="hdr" header="Session-Expires:" check_it="true" assign_to="refresher"/></action></recv>
<send><![CDATA[
ACK [$contact] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From:[$to];tag=[pid]sipp[call_number]
To:[$from]
Call-ID: [call_id]
CSeq: 5 ACK
Max-Forwards: 70
Content-Length: 0

]]></send>
<Reference variables="refresher"/>
`

// TestCarrierProfileCalls applies a profile and places a call to a carrier that behaves as its documentation says. With
// the settings of row.broken the carrier refuses the call.
func TestCarrierProfileCalls(t *testing.T) {
	t.Parallel()
	const credentials = "username: acme, password: " + canary
	plusTo := `^INVITE sip:[+]12025550199@`
	for name, row := range map[string]struct {
		carrier sippCarrier
		keys    string // of the trunk, besides carrier and proxy
		broken  string // a key that makes the carrier refuse the call
		refusal string // in the trace
	}{
		// https://www.twilio.com/docs/sip-trunking/troubleshooting: 407; numbers in E.164 with +; the ACK names Twilio's private
		// Contact and goes to its Record-Route; no session timers.
		"twilio": {
			sippCarrier{
				challenge: `407 Proxy-Authenticate: Digest realm="sip.twilio.com",qop="auth",nonce="dkgRu3NU",opaque="79787547"`,
				needs: []sippNeed{
					{`Proxy-Authorization: Digest .*realm=.sip.twilio.com`, "403 Forbidden"},
					{plusTo, "400 Invalid Phone Number"},
					{`From: [^;]*sip:[+]12025550100@`, "403 Invalid Caller ID"},
				},
				ringing: sippSend("183 Session Progress", "", sippSDP),
				answer:  "Record-Route: <sip:[local_ip]:[local_port];lr>\nContact: <sip:172.25.40.62:5060>\n",
				ack:     `^ACK sip:172.25.40.62:5060`,
			},
			credentials, "number_format: digits", "400 Invalid Phone Number",
		},
		// https://developers.telnyx.com/docs/voice/sip-trunking/configuration/caller-id-policy: the caller number is that of
		// P-Asserted-Identity; D35 without E.164. Traces show challenges without qop.
		"telnyx": {
			sippCarrier{
				challenge: `407 Proxy-Authenticate: Digest realm="sip.telnyx.com", nonce="aQ6g0GkO", opaque="2/10.13.246.184"`,
				needs: []sippNeed{
					{`Proxy-Authorization: Digest .*realm=.sip.telnyx.com`, "403 Forbidden D25"},
					{plusTo, "403 Empty destination P18"},
					{`P-Asserted-Identity: .sip:[+]12025550100@`, "403 Caller Origination Number is Invalid D35"},
				},
				ringing: sippSend("180 Ringing", "", ""),
				talking: sippRefresh,
			},
			credentials, "asserted_identity: false", "403 Caller Origination Number is Invalid D35",
		},
		// https://zadarma.com/en/support/instructions/asteriskpjsip/trunk/: no credentials; P-Asserted-Identity; A-law first.
		"zadarma": {
			sippCarrier{
				needs: []sippNeed{
					{`P-Asserted-Identity: .sip:[+]12025550100@`, "403 Forbidden"},
					{`m=audio [0-9]+ RTP/AVP 8 0 `, "488 Not Acceptable Here"},
				},
				ringing: sippSend("183 Session Progress", "", sippSDP),
			},
			"privacy: false", "codecs: [pcmu]", "488 Not Acceptable Here",
		},
		// https://docs.asterisk.org/Latest_API/API_Documentation/Module_Configuration/res_pjsip: 401 of the realm asterisk; 100rel;
		// session timers; _X. matches digits.
		"asterisk": {
			sippCarrier{
				challenge: `401 WWW-Authenticate: Digest realm="asterisk",nonce="1732635/6b1d",opaque="31b2",algorithm=MD5,qop="auth"`,
				digest:    true,
				needs:     []sippNeed{{`^INVITE sip:12025550199@`, "404 Not Found"}},
				ringing:   sippPRACK,
				answer:    "Require: timer\nSession-Expires: 1800;refresher=uac\n",
			},
			credentials, "number_format: e164", "404 Not Found",
		},
		// https://github.com/signalwire/freeswitch/blob/master/conf/vanilla/sip_profiles/external.xml: no authentication; a session
		// that FreeSWITCH refreshes; no 100rel.
		"freeswitch": {
			sippCarrier{
				needs:   []sippNeed{{`^INVITE sip:12025550199@`, "404 Not Found"}},
				ringing: sippSend("180 Ringing", "", ""),
				answer:  "Require: timer\nSession-Expires: 120;refresher=uas\n",
				talking: sippRefresh,
			},
			"privacy: false", "number_format: e164", "404 Not Found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, failed := row.carrier.start(t)
			srv, api := startServer(t, addr)
			keys := fmt.Sprintf(`carrier: %s, proxy: "sip:%s;transport=udp", %s`, name, addr, row.keys)
			srv.applyTrunk(t, keys)
			call := callAndWait(t, api)
			text := srv.waitTrace(t, call.CallID)
			if call.Status != "ended" || call.Reason != "callee_hangup" || failed() != "" {
				t.Errorf("the call is %s, %s; sipp: %s\n%s", call.Status, call.Reason, failed(), text)
			}
			// sipp sends back what it receives, so these packets show that Parley sent audio.
			if q := call.Quality; q == nil || q.Received.Packets == nil || *q.Received.Packets < 50 {
				t.Errorf("quality %+v", q)
			}
			if !strings.Contains(text, "Normal call clearing") {
				t.Errorf("no Reason in\n%s", text)
			}
			srv.applyTrunk(t, keys+", "+row.broken)
			call = callAndWait(t, api)
			if text = srv.waitTrace(t, call.CallID); call.Status != "failed" || !strings.Contains(text, row.refusal) {
				t.Errorf("with %s the call is %s, %s\n%s", row.broken, call.Status, call.Reason, text)
			}
		})
	}
}

// TestSecureTwilio places a call by TLS and SRTP: https://www.twilio.com/docs/api/errors/32208. sipp supports neither, so
// siptest plays the carrier.
func TestSecureTwilio(t *testing.T) {
	t.Parallel()
	certPEM, keyPEM := newCertificate(t)
	cert, key := writeFile(t, "cert", string(certPEM)), writeFile(t, "key", string(keyPEM))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	twilio := carrier(t, &siptest.Carrier{
		TLS: endpoint.TLS{Listen: "127.0.0.1:0", Certificate: &pair},
		Answer: func(in siptest.Invite) siptest.Script {
			if in.Transport != "TLS" {
				return siptest.Script{Status: http.StatusNotAcceptable}
			}
			return siptest.Script{
				Challenge: &siptest.Challenge{Realm: "sip.twilio.com", Username: "acme", Password: canary, Proxy: true},
				Status:    http.StatusOK, Talk: listenFor(1e9),
			}
		},
	})
	srv, api := startServer(t, "127.0.0.1:9", func(c *config.Config) {
		c.SIPTLS = config.TLSFiles{Addr: "127.0.0.1:0", Cert: cert, Key: key, CA: cert}
	})
	srv.applyTrunk(t, fmt.Sprintf("carrier: twilio-secure, proxy: %q, username: acme, password: %s", twilio.TLSProxy(), canary))
	call := callAndWait(t, api)
	text := srv.waitTrace(t, call.CallID)
	if q := call.Quality; call.Status != "ended" || q == nil || q.Received.Packets == nil || *q.Received.Packets < 20 || !strings.Contains(text, "RTP/SAVP") {
		t.Errorf("%+v\n%s", call, text)
	}
}

type refusingDialer struct{ failure media.DialError }

// Dial implements control.Dialer.
func (d refusingDialer) Dial(context.Context, media.Target, func(media.Progress)) (media.Leg, error) {
	return nil, &d.failure
}

// TestRefusalIsExplained checks that the trace says what a documented response means.
func TestRefusalIsExplained(t *testing.T) {
	t.Parallel()
	profiles, err := apply.AllCarriers()
	if err != nil {
		t.Fatal(err)
	}
	for proxy, want := range map[string]string{
		"sip:acme.pstn.twilio.com": "Retry-After: 1, Twilio Elastic SIP Trunking: the country is off in Voice Geo Permissions",
		"sip:sip.example.com":      "Retry-After: 1",
	} {
		d := explainingDialer{refusingDialer{media.DialError{
			Status: 403, Reason: "No International Authorization", Ladder: []media.Message{{Line: "403", Note: "Retry-After: 1"}},
		}}, profiles}
		_, err := d.Dial(t.Context(), media.Target{Trunk: media.Trunk{Proxy: proxy}}, nil)
		refused, ok := err.(*media.DialError) //nolint:errorlint // always that
		if !ok || !strings.HasPrefix(refused.Ladder[0].Note, want) || strings.Contains(refused.Ladder[0].Note, "Twilio") != strings.Contains(want, "Twilio") {
			t.Errorf("%s: %v", proxy, err)
		}
	}
}
