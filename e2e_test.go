package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/media/tone"
)

// openDir returns a folder that the database's user can enter. The parent folders of t.TempDir belong to root.
func openDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "parley") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// decodeSpeech returns the words in one channel of a recording.
func decodeSpeech(pcm []int16, rate int) string {
	var words []string
	for _, w := range tone.NewDecoder(rate).Decode(append(pcm, make([]int16, rate)...)) {
		words = append(words, w.Text)
	}
	return strings.Join(words, " ")
}

var (
	turnLine = regexp.MustCompile(`turn (\d+)  (.*) = (\d+) ms`)
	phase    = regexp.MustCompile(`[a-z]+ (\d+)`)
)

// TestDemo places the demo's call and compares its output and its recording with the script.
func TestDemo(t *testing.T) {
	t.Parallel()
	inTime(t, testDemoCall)
}

func testDemoCall(t testing.TB) {
	dir := openDir(t)
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	code := run(&env{Context: ctx, out: &out, errs: &errs, environ: []string{
		"PARLEY_DATA_DIR=" + dir, "PARLEY_HTTP_ADDR=127.0.0.1:0", "PARLEY_METRICS_ADDR=127.0.0.1:0", "PARLEY_SIP_ADDR=127.0.0.1:0", "PARLEY_WEBRTC_UDP_PORT=0",
	}}, []string{"demo", "--once"})
	if code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out.String(), errs.String())
	}
	if d := time.Since(began); d > 40*time.Second {
		t.Errorf("the demo took %v", d)
	}
	turns := turnLine.FindAllStringSubmatch(out.String(), -1)
	if len(turns) < 3 {
		t.Fatalf("%d turns:\n%s", len(turns), out.String())
	}
	for _, m := range turns {
		sum := 0.0
		parts := phase.FindAllStringSubmatch(m[2], -1)
		for _, p := range parts {
			ms, _ := strconv.ParseFloat(p[1], 64)
			sum += ms
		}
		total, _ := strconv.ParseFloat(m[3], 64)
		// The demo prints whole milliseconds. Another test checks the exact values of the API.
		if math.Abs(sum-total) > 1+float64(len(parts))/2 {
			t.Errorf("phases sum to %v: %s", sum, m[0])
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "bucket", "recordings", "*.wav"))
	if err != nil || len(files) != 1 {
		t.Fatalf("recordings %v, %v", files, err)
	}
	left, right, rate, err := recorder.Read(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := decodeSpeech(left, rate), demo.Hello+" "+strings.Join(demo.Lines(), " "); got != want {
		t.Errorf("the caller's channel says %q, want %q", got, want)
	}
	if got := decodeSpeech(right, rate); !strings.HasPrefix(got, "hello, this is parley. how can i help?") || !strings.HasSuffix(got, "goodbye!") {
		t.Errorf("the agent's channel says %q", got)
	}
}

// startServer runs a complete server on free ports, with a trunk whose proxy is proxy.
func startServer(t testing.TB, proxy string, change ...func(*config.Config)) (*server, *demo.Client) {
	t.Helper()
	c := testConfig(t)
	for _, f := range change {
		f(&c)
	}
	srv := runServer(t, c, slog.New(slog.DiscardHandler))
	key, err := createDemo(t.Context(), srv.db, fmt.Sprintf(demo.File, "127.0.0.1:9", demo.Secret, proxy))
	if err != nil {
		t.Fatal(err)
	}
	return srv, &demo.Client{URL: srv.publicURL, Key: key}
}

func runServer(t testing.TB, c config.Config, log *slog.Logger) *server {
	t.Helper()
	srv, err := newServer(t.Context(), c, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		srv.stop(ctx)
	})
	return srv
}

func get(t testing.TB, api *demo.Client, path string, answer any) {
	t.Helper()
	if err := api.Do(t.Context(), http.MethodGet, path, nil, answer); err != nil {
		t.Fatal(err)
	}
}

func post(t testing.TB, api *demo.Client, path string, body, answer any) {
	t.Helper()
	if err := api.Do(t.Context(), http.MethodPost, path, body, answer); err != nil {
		t.Fatal(err)
	}
}

// requestCall requests a call by the demo's agent and returns the call's id.
func requestCall(t testing.TB, api *demo.Client, number string) string {
	t.Helper()
	var c apiCall
	post(t, api, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": number}, &c)
	return c.CallID
}

func readCall(t testing.TB, api *demo.Client, id string) (c apiCall) {
	t.Helper()
	get(t, api, "/v1/calls/"+id, &c)
	return c
}

func linesOf(call demo.Call, role string) (all []string) {
	for _, l := range call.Transcript {
		if l.Role == role {
			all = append(all, l.Text)
		}
	}
	return all
}

// waitEnded waits for a call to end and returns it with its turns.
func waitEnded(t testing.TB, c *demo.Client, id string) (demo.Call, []demo.Turn) {
	t.Helper()
	var call demo.Call
	var turns []demo.Turn
	eventuallyWithin(t, 40*time.Second, "the end of call "+id, func() bool {
		call = demo.Call{}
		get(t, c, "/v1/calls/"+id, &call)
		return call.Status == "ended" || call.Status == "failed"
	})
	get(t, c, "/v1/calls/"+id+"/turns", &turns)
	return call, turns
}

// sippScenario is a callee that answers, speaks twice at fixed times, and hangs up. sipp counts the OPTIONS request of
// the trunk as a call.
const sippScenario = `<?xml version="1.0" encoding="ISO-8859-1" ?>
<scenario name="callee">
  <recv request="OPTIONS" optional="true" next="1"/>
  <recv request="INVITE"/>
  <send><![CDATA[
SIP/2.0 180 Ringing
[last_Via:]
[last_From:]
[last_To:];tag=[pid]SIPpTag01[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
Content-Length: 0

]]></send>
  <pause milliseconds="200"/>
  <send retrans="500"><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:];tag=[pid]SIPpTag01[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:[local_ip]:[local_port];transport=[transport]>
Content-Type: application/sdp
Content-Length: [len]

v=0
o=user1 53655765 2353687637 IN IP4 [local_ip]
s=-
c=IN IP4 [media_ip]
t=0 0
m=audio [media_port] RTP/AVP 0
a=rtpmap:0 PCMU/8000

]]></send>
  <recv request="ACK"/>
  <pause milliseconds="4000"/>
  <nop><action><exec rtp_stream="%s,1,0,PCMU/8000"/></action></nop>
  <pause milliseconds="6500"/>
  <nop><action><exec rtp_stream="%s,1,0,PCMU/8000"/></action></nop>
  <pause milliseconds="6500"/>
  <send retrans="500"><![CDATA[
BYE sip:[$1] SIP/2.0
Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
From: [$3];tag=[pid]SIPpTag01[call_number]
To: [$2]
Call-ID: [call_id]
CSeq: 1 BYE
Max-Forwards: 70
Content-Length: 0

]]></send>
  <recv response="200" next="2"/>
  <label id="1"/>
  <send><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:];tag=[pid]SIPpTag02[call_number]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0

]]></send>
  <label id="2"/>
  <nop/>
  <Reference variables="9"/>
</scenario>
`

// TestSipp calls sipp, an independent SIP implementation.
func TestSipp(t *testing.T) {
	t.Parallel()
	inTime(t, testSippCall)
}

func testSippCall(t testing.TB) {
	sipp, err := exec.LookPath("sipp")
	if err != nil {
		t.Skip("sipp is not installed (apt-get install sip-tester)")
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		pcm, _ := tone.Encode(8000, text)
		pcm = append(pcm, make([]int16, 1600)...) // a phone does not stop at the last voiced sample
		b := make([]byte, len(pcm))
		codec.PCMU{}.Encode(b, pcm)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	scenario := strings.Replace(sippScenario, `<recv request="INVITE"/>`, `<recv request="INVITE"><action>
    <ereg regexp="sip:(.*)>" search_in="hdr" header="Contact:" check_it="true" assign_to="9,1"/>
    <ereg regexp=".*" search_in="hdr" header="From:" check_it="true" assign_to="2"/>
    <ereg regexp=".*" search_in="hdr" header="To:" check_it="true" assign_to="3"/>
  </action></recv>`, 1)
	scenario = fmt.Sprintf(scenario, file("one.ul", "when do you open"), file("two.ul", "have you the odyssey"))
	xml := filepath.Join(dir, "callee.xml")
	if err := os.WriteFile(xml, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	port, media := freePort(t), freePort(t)
	cmd := exec.CommandContext(t.Context(), sipp, "-sf", xml, "-i", "127.0.0.1", "-p", port, "-mp", media, "-nostdin", "-m", "2", "-timeout", "60")
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, api := startServer(t, "127.0.0.1:"+port)
	call, turns := waitEnded(t, api, requestCall(t, api, demo.Number))
	if err := cmd.Wait(); err != nil {
		t.Errorf("sipp: %v\n%s", err, tail(out.String(), 60))
	}
	if call.Status != "ended" || call.Reason != "callee_hangup" {
		t.Errorf("the call is %s, %s", call.Status, call.Reason)
	}
	answered := 0
	for _, turn := range turns[min(1, len(turns)):] {
		if _, ok := turn.Metrics["turn_ms"]; ok {
			answered++
		}
	}
	if answered < 2 {
		t.Errorf("%d turns answered: %+v\n%+v", answered, turns, call.Transcript)
	}
	if got := strings.Join(linesOf(call, "caller"), "; "); got != "when do you open; have you the odyssey" {
		t.Errorf("the caller was understood as %q", got)
	}
}

func tail(s string, lines int) string {
	all := strings.Split(s, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// freePort returns mediatest.FreePort as text.
func freePort(t testing.TB) string {
	t.Helper()
	return strconv.Itoa(mediatest.FreePort(t))
}
