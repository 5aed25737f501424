package sip

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
)

// sippCallee answers, sends keys from pcap files, holds by re-INVITE, resumes,
// and waits for the BYE.
const sippCallee = `<?xml version="1.0" encoding="ISO-8859-1" ?>
<scenario name="callee">
  <recv request="INVITE"><action>
    <ereg regexp="sip:[^;&gt;]*" search_in="hdr" header="Contact:" check_it="true" assign_to="1"/>
    <ereg regexp=".*" search_in="hdr" header="From:" check_it="true" assign_to="2"/>
    <ereg regexp=".*" search_in="hdr" header="To:" check_it="true" assign_to="3"/>
  </action></recv>
  <send><![CDATA[
SIP/2.0 180 Ringing
[last_Via:]
[last_From:]
[last_To:];tag=[pid]sipp[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
Content-Length: 0

]]></send>
  <send retrans="500"><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:];tag=[pid]sipp[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
Content-Type: application/sdp
Content-Length: [len]

v=0
o=sipp 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0 101
a=rtpmap:0 PCMU/8000
a=rtpmap:101 telephone-event/8000

]]></send>
  <recv request="ACK"/>
  %s
  %s
  %s
  <recv request="BYE"/>
  <send><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0

]]></send>
  <Reference variables="1,2,3"/>
</scenario>
`

const sippKey = `<nop><action><exec play_pcap_audio="/usr/share/sip-tester/dtmf_2833_%s.pcap"/></action></nop><pause milliseconds="400"/>
`

// sippReinvite is a re-INVITE with a CSeq, a direction, the answer's direction,
// and the branch of its ACK.
const sippReinvite = `<send retrans="500"><![CDATA[
INVITE [$1] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From:[$3];tag=[pid]sipp[call_number]
To:[$2]
Call-ID: [call_id]
CSeq: %[1]d INVITE
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: [len]

v=0
o=sipp 1 %[1]d IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0 101
a=rtpmap:0 PCMU/8000
a=rtpmap:101 telephone-event/8000
a=%[2]s

]]></send>
<recv response="200"><action><ereg regexp="a=%[3]s" search_in="body" check_it="true" assign_to="%[4]d"/></action></recv>
<send><![CDATA[
ACK [$1] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch%[5]s]
From:[$3];tag=[pid]sipp[call_number]
To:[$2]
Call-ID: [call_id]
CSeq: %[1]d ACK
Max-Forwards: 70
Content-Length: 0

]]></send>
<pause milliseconds="300"/>
<Reference variables="%[4]d"/>
`

// TestSipp calls sipp over UDP and TCP: keys, hold, an ACK with the branch of the
// re-INVITE, and resume.
func TestSipp(t *testing.T) {
	path, err := exec.LookPath("sipp")
	if err != nil {
		t.Skip("sipp is not installed (apt-get install sip-tester)")
	}
	keys := "12#0*9"
	if os.Getuid() != 0 {
		keys = "" // playing pcap files requires a raw socket
	}
	var pressed strings.Builder
	for _, k := range keys {
		name := string(k)
		switch k {
		case '#':
			name = "pound"
		case '*':
			name = "star"
		}
		fmt.Fprintf(&pressed, sippKey, name)
	}
	scenario := fmt.Sprintf(sippCallee, pressed.String(),
		fmt.Sprintf(sippReinvite, 1, "sendonly", "recvonly", 4, "-2"), // RFC 6026
		fmt.Sprintf(sippReinvite, 2, "sendrecv", "sendrecv", 5, ""))
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			xml := filepath.Join(dir, "callee.xml")
			if err := os.WriteFile(xml, []byte(scenario), 0o600); err != nil {
				t.Fatal(err)
			}
			port := mediatest.FreePort(t)
			mode := map[string]string{"udp": "u1", "tcp": "t1"}[transport]
			cmd := exec.CommandContext(t.Context(), path, "-sf", xml, "-i", "127.0.0.1", "-p", strconv.Itoa(port), "-mp", strconv.Itoa(mediatest.FreePort(t)),
				"-t", mode, "-nostdin", "-m", "1", "-timeout", "30", "-trace_err", "-error_file", filepath.Join(dir, "errors"))
			cmd.Dir = dir
			out := &output{wrote: make(chan struct{}, 1)}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			l := newEnvWith(t, &UA{FirstMedia: -1, MediaGap: -1}, nil)
			target := l.target()
			target.Trunk.Proxy = fmt.Sprintf("sip:127.0.0.1:%d;transport=%s", port, transport)
			call, err := l.ua.Dial(shortContext(t), target, nil)
			for limit := shortContext(t); err != nil && limit.Err() == nil; { // wait until sipp listens
				<-time.After(20 * time.Millisecond)
				target.ID = l.target().ID
				call, err = l.ua.Dial(limit, target, nil)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			reading := make(chan error, 1)
			go func() { reading <- drain(call) }()
			var got strings.Builder
			for got.Len() < len(keys) {
				select {
				case k := <-call.Digits():
					got.WriteRune(k)
				case <-shortContext(t).Done():
					t.Fatalf("got the keys %q\n%s", got.String(), out)
				}
			}
			if got.String() != keys {
				t.Errorf("got the keys %q, want %q", got.String(), keys)
			}
			reinvites := func() (n int) {
				for _, line := range lines(call.(media.SignalingTracer).Ladder(t.Context())) { //nolint:forcetypeassert // the leg of package sip/leg
					if line == "<INVITE" {
						n++
					}
				}
				return n
			}
			waitFor(t, func() bool { return reinvites() >= 2 }, func() string { return fmt.Sprintf("%d re-INVITEs\n%s", reinvites(), out) })
			<-time.After(500 * time.Millisecond) // sipp needs time for the answer
			_ = call.Hangup(media.LocalHangup)
			if err := <-reading; err == nil {
				t.Error("got no error from the reader after the hangup")
			}
			if err := cmd.Wait(); err != nil {
				errors, _ := os.ReadFile(filepath.Join(dir, "errors"))
				t.Errorf("sipp: %v\n%s\n%s", err, errors, out)
			}
		})
	}
}
