package main

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/media/recorder"
	"github.com/parley-voice/parley/media/tone"
)

// pageRate is the sample rate at which tests analyze audio of pages, in Hz.
const pageRate = 16000

// chrome is a browser, and a server with an agent that the browser can call.
type chrome struct {
	ctx    context.Context //nolint:containedctx // the browser's, by which tabs are opened
	server *server
	api    *demo.Client
}

// openChrome starts Chromium. Its microphone plays lines: the first line 4 s after the microphone is opened, and the
// others at intervals of 5 s.
func openChrome(t *testing.T, lines ...string) chrome {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (apt-get install chromium)")
	}
	dir := openDir(t)
	wav := filepath.Join(dir, "microphone.wav")
	writeMicrophone(t, wav, lines)
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(dir, "profile"))}
	for name, value := range map[string]any{
		"use-fake-device-for-media-stream": true, "use-file-for-fake-audio-capture": wav + "%noloop",
		"autoplay-policy": "no-user-gesture-required", "allow-loopback-in-peer-connection": true, "disable-features": "WebRtcHideLocalIpsWithMdns",
		"disable-quic": true, "disable-background-networking": true, "disable-component-update": true, "disable-sync": true,
		"headless": "new", "disable-gpu": true, "mute-audio": true, "host-resolver-rules": "MAP insecure.test 127.0.0.1",
	} {
		options = append(options, chromedp.Flag(name, value))
	}
	allocator, quit := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(quit)
	ctx, leave := chromedp.NewContext(allocator)
	t.Cleanup(leave)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // waits until Chromium has stopped writing files
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	srv, api := startServer(t, "127.0.0.1:9", func(c *config.Config) {
		c.Talk, c.Hosts = []config.TalkAgent{{Org: "demo", Name: "demo"}}, []string{"insecure.test"}
	})
	c := chrome{ctx, srv, api}
	for host, setting := range map[string]browser.PermissionSetting{"127.0.0.1": "granted", "localhost": "denied"} {
		c.permit(t, c.at(host), setting)
	}
	return c
}

// permit sets whether pages of an origin may use the microphone.
func (c chrome) permit(t *testing.T, origin string, setting browser.PermissionSetting) {
	t.Helper()
	if _, err := chromedp.Run(c.ctx, func(ctx context.Context, _ *chromedp.Target) (cdp.Empty, error) {
		return chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: "microphone"}, Setting: setting, Origin: origin,
		})
	}); err != nil {
		t.Fatal(err)
	}
}

// at returns the URL of the server with another host name.
func (c chrome) at(host string) string {
	return strings.Replace(c.server.publicURL, "127.0.0.1", host, 1)
}

func writeMicrophone(t *testing.T, path string, lines []string) {
	t.Helper()
	const rate = 48000
	var pcm []int16
	for i, line := range lines {
		pcm = append(pcm, make([]int16, rate*max(4, 5*min(i, 1)))...)
		said, _ := tone.Encode(rate, line)
		pcm = append(pcm, said...)
	}
	pcm = append(pcm, make([]int16, rate*60)...)
	b := make([]byte, 44, 44+2*len(pcm))
	copy(b, "RIFF....WAVEfmt ")
	le := binary.LittleEndian
	le.PutUint32(b[4:], uint32(36+2*len(pcm)))
	le.PutUint32(b[16:], 16)
	le.PutUint16(b[20:], 1) // 16-bit PCM
	le.PutUint16(b[22:], 1)
	le.PutUint32(b[24:], rate)
	le.PutUint32(b[28:], 2*rate)
	le.PutUint16(b[32:], 2)
	le.PutUint16(b[34:], 16)
	copy(b[36:], "data")
	le.PutUint32(b[40:], uint32(2*len(pcm)))
	for _, v := range pcm {
		b = le.AppendUint16(b, uint16(v))
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// tab is a page of the browser with the test script probe.js.
type tab struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // the tab's
}

// open opens a page in a new tab. options are options of probe.js.
func (c chrome) open(t testing.TB, url string, options map[string]any) tab {
	t.Helper()
	ctx, leave := chromedp.NewContext(c.ctx)
	t.Cleanup(leave)
	probe, err := os.ReadFile("api/talkpage/testdata/probe.js")
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	p := tab{t, ctx}
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: "window.probeOptions = " + string(encoded) + ";" + string(probe),
		})
		return err
	}), chromedp.Navigate(url))
	return p
}

func (c chrome) talk(t testing.TB, options map[string]any) tab {
	t.Helper()
	return c.open(t, c.server.publicURL+"/talk", options)
}

func (p tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval runs JavaScript and waits for its result.
func eval[T any](p tab, script string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](script, func(e *runtime.EvaluateParams) {
		chromedp.EvalAwaitPromise(e)
		yes := true
		e.UserGesture = &yes
	}))
	if err != nil {
		p.t.Fatalf("%.80s: %v", script, err)
	}
	return v
}

func (p tab) run(script string) {
	p.t.Helper()
	eval[chromedp.Void](p, script)
}

// until waits up to 15 s for a JavaScript expression to become true in the page.
func (p tab) until(what, expression string) {
	p.t.Helper()
	p.run("probe.until(() => (" + expression + "), 15000, " + strconv.Quote(what) + ").then(() => {})")
}

// untilAt waits up to 15 s until the page at a path has loaded. A navigation ends the evaluation of a script in the old page
// with an error, which this ignores.
func (p tab) untilAt(path string) {
	p.t.Helper()
	arrived := "location.pathname.endsWith(" + strconv.Quote(path) + ") && document.readyState === 'complete'"
	for range 150 {
		there, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](arrived))
		if err == nil && there {
			return
		}
		_, _ = chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void]("new Promise((r) => setTimeout(r, 100))",
			func(e *runtime.EvaluateParams) { chromedp.EvalAwaitPromise(e) }))
	}
	p.t.Fatalf("timeout waiting for the page %s", path)
}

// say plays text into the page's microphone and returns at its end.
func (p tab) say(text string) {
	p.t.Helper()
	pcm, _ := tone.Encode(pageRate, text)
	b := make([]byte, 0, 2*len(pcm))
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	p.run("probe.say('" + base64.StdEncoding.EncodeToString(b) + "').then(() => {})")
}

// ask plays text into the page's microphone and returns when the agent has answered.
func (p tab) ask(text string) {
	p.t.Helper()
	p.say(text)
	p.run("probe.spoke(performance.now())")
}

// heard returns the words in the audio that the page received.
func (p tab) heard() string {
	p.t.Helper()
	b, err := base64.StdEncoding.DecodeString(eval[string](p, "probe.sound()"))
	if err != nil {
		p.t.Fatal(err)
	}
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return decodeSpeech(pcm, pageRate)
}

// joinResult is the result of Parley.join.
type joinResult struct {
	Took          float64 // duration in ms if the join succeeded
	Code, Message string  // error code if the join failed
}

// join joins a new call by the client module, without the /talk page.
func (p tab) join(w webTicket) joinResult {
	p.t.Helper()
	return eval[joinResult](p, "probe.join({token: "+strconv.Quote(w.Token)+", url: "+strconv.Quote(w.URL)+"})")
}

// checkHungUp waits for the end of a call and returns its turns. It checks that the visitor ended the call.
func (c chrome) checkHungUp(t testing.TB, id string) []demo.Turn {
	t.Helper()
	call, turns := waitEnded(t, c.api, id)
	if call.Reason != "callee_hangup" {
		t.Errorf("the call ended with %s", call.Reason)
	}
	return turns
}

// recorded returns the caller's words in the recording of a call.
func (c chrome) recorded(t testing.TB, id string) string {
	t.Helper()
	waitRecording(t, c.api, id)
	left, _, rate, err := recorder.Read(filepath.Join(c.server.config.DataDir, "bucket", "recordings", id+".wav"))
	if err != nil {
		t.Fatal(err)
	}
	return decodeSpeech(left, rate)
}

func (p tab) startCall() string {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS("#talk")))
	p.until("a call", "document.documentElement.dataset.call")
	return eval[string](p, "document.documentElement.dataset.call")
}

// soundsLike reports whether said contains the phrase want. A browser stretches audio, so up to a quarter of the
// characters may differ, be missing or be extra.
func soundsLike(said, want string) bool {
	before := make([]int, len(said)+1) // length of the best match that ends at each position
	for i := range len(want) {
		now := []int{i + 1}
		for j := range len(said) {
			same := before[j]
			if said[j] != want[i] {
				same++
			}
			now = append(now, min(same, before[j+1]+1, now[j]+1))
		}
		before = now
	}
	return slices.Min(before) <= len(want)/4
}
