package main

import (
	"encoding/json"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-voice/parley/bench/relay"
)

const greeting = "hello, this is parley. how can i help?"

// browserLate is the scheduling delay above which a failed trial is repeated. Chromium plays audio from buffers of 10
// ms.
const browserLate = 10 * time.Millisecond

// TestBrowser talks with the demo's agent from Chromium, with one tab for each journey.
func TestBrowser(t *testing.T) {
	t.Parallel()
	c := openChrome(t, "when do you open", "have you the odyssey")
	for name, journey := range map[string]func(testing.TB, chrome){
		"talk page": talkOnPage, "typed words": typeOnPage, "client module": joinWithClient, "barge-in": interruptAnswer, "mute": mutePage, "reload": reloadPage,
		"keys and devices": keysAndDevices, "chosen devices": chooseDevices, "network loss": networkLost, "socket loss": socketLost, "friendly errors": friendlyErrors, "hangup before start": hangUpBeforeStart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTimeWithin(t, browserLate, func(t testing.TB) { journey(t, c) })
		})
	}
}

// talkOnPage checks that a visitor can talk through the microphone, read the transcript and the latency, and hang up.
func talkOnPage(t testing.TB, c chrome) {
	p := c.talk(t, map[string]any{"file": true})
	id := p.startCall()
	p.until("two answers", "document.querySelectorAll('#turns li').length >= 3")
	p.run("probe.spoke(0)")
	lines := eval[[]string](p, "[...document.querySelectorAll('#lines li')].map((l) => l.className + ': ' + l.lastChild.textContent)")
	for _, want := range []string{"agent: Hello, this is Parley. How can I help?", "caller: when do you open", "caller: have you the odyssey"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return soundsLike(l, want) }) {
			t.Errorf("%q is not in the transcript: %q", want, lines)
		}
	}
	heard := p.heard()
	if !soundsLike(heard, greeting) || !soundsLike(heard, "we open at 9 tomorrow, and we close at 6.") {
		t.Errorf("the page could play %q", heard)
	}
	p.do(chromedp.Click(chromedp.CSS("#hangup")))
	p.until("its end", "document.getElementById('status').textContent === 'You hung up.'")
	turns := c.checkHungUp(t, id)
	shown := eval[[]string](p, "[...document.querySelectorAll('#turns .head b')].map((b) => b.textContent).reverse()")
	for i, turn := range turns {
		if ms, ok := turn.Metrics["turn_ms"].(float64); ok && (i >= len(shown) || shown[i] != strconv.Itoa(int(math.Round(ms)))+" ms") {
			t.Errorf("turn %d took %.1f ms, and the page shows %q", i, ms, shown)
		}
	}
	if caller := c.recorded(t, id); !soundsLike(caller, "when do you open have you the odyssey") {
		t.Errorf("the caller is recorded with %q", caller)
	}
	if errs := eval[[]string](p, "probe.errors"); len(errs) > 0 {
		t.Errorf("the page says %q", errs)
	}
}

// typeOnPage checks that a visitor can talk by typing, with the keyboard only and without a microphone, and that a reload
// keeps the call without a microphone.
func typeOnPage(t testing.TB, c chrome) {
	p := c.talk(t, nil)
	p.do(chromedp.Click(chromedp.CSS("#typed")))
	id := p.startCall()
	p.until("focus in the text box", "document.activeElement.id === 'text'")
	answered := func(line string) {
		t.Helper()
		p.until("an answer to "+line, "[...document.querySelectorAll('#lines .caller')].some((l) => l.lastChild.textContent === '"+line+"') && "+
			"document.querySelector('#lines li:last-child').className === 'agent'")
	}
	p.do(chromedp.KeyEvent("when do you open?" + kb.Enter))
	answered("when do you open?")
	p.do(chromedp.Reload())
	p.until("the call again", "document.getElementById('hangup').disabled === false && document.activeElement.id === 'text'")
	p.do(chromedp.KeyEvent("do you have the odyssey" + kb.Enter))
	answered("do you have the odyssey")
	p.do(chromedp.Click(chromedp.CSS("#hangup")))
	p.until("its end", "document.getElementById('status').textContent === 'You hung up.'")
	waitEnded(t, c.api, id)
	if caller := c.recorded(t, id); caller != "" {
		t.Errorf("the caller is recorded with %q", caller)
	}
}

// joinWithClient checks that a page joins with the client module within the time limit. The page must receive the turns
// that are stored. If the API ends the call, the call must end in the page too.
func joinWithClient(t testing.TB, c chrome) {
	w := ticket(t, c.api)
	p := c.talk(t, nil)
	j := p.join(w)
	t.Logf("connected in %.0f ms", j.Took)
	if j.Took == 0 || j.Took > 1500 {
		t.Errorf("joined with %+v", j)
	}
	p.run("probe.spoke(0)")
	p.ask("do you have the odyssey")
	if again := c.talk(t, nil).join(w); again.Code != "token_used" || again.Message != "The token was already used. Start a new call." {
		t.Errorf("joined with a used token: %+v", again)
	}
	post(t, c.api, "/v1/calls/"+w.CallID+"/end", map[string]any{}, new(json.RawMessage))
	p.until("its end", "probe.call.reason")
	if reason := eval[string](p, "probe.call.reason"); reason != "api_hangup" {
		t.Errorf("the page says it ended with %s", reason)
	}
	if heard := p.heard(); !soundsLike(heard, greeting+" yes, 2 copies are here. shall i keep one for you?") {
		t.Errorf("the page could play %q", heard)
	}
	waitEnded(t, c.api, w.CallID)
	var stored []map[string]any
	get(t, c.api, "/v1/calls/"+w.CallID+"/turns", &stored)
	received := eval[[]map[string]any](p, "probe.events.filter((e) => e.type === 'turn').map((e) => e.turn)")
	if !reflect.DeepEqual(received, stored) || len(stored) < 2 {
		t.Errorf("the page received %v, stored is %v", received, stored)
	}
	if loud := eval[bool](p, "probe.level.agent > 0.05 && probe.level.microphone > 0.05"); !loud {
		t.Error("the page received no levels")
	}
}

// interruptAnswer checks that a caller can interrupt an answer.
func interruptAnswer(t testing.TB, c chrome) {
	w := ticket(t, c.api)
	p := c.talk(t, nil)
	p.join(w)
	p.run("probe.spoke(0)")
	p.say("do you have the odyssey")
	p.until("an answer", "probe.events.findLast((e) => e.state)?.state === 'speaking'")
	time.Sleep(600 * time.Millisecond) // the answer takes 2 s
	p.say("wait a moment please")
	p.until("an interrupted turn", "probe.events.some((e) => e.turn?.interrupted)")
	p.run("probe.spoke(0)")
	if heard := p.heard(); !soundsLike(heard, greeting) || soundsLike(heard, "shall i keep one for you?") {
		t.Errorf("the page could play %q", heard)
	}
	p.run("probe.call.hangUp().then(() => {})")
	c.checkHungUp(t, w.CallID)
	if caller := c.recorded(t, w.CallID); !soundsLike(caller, "wait a moment please") {
		t.Errorf("the caller is recorded with %q", caller)
	}
}

// mutePage checks that speech while the page is muted does not reach the agent. The key M mutes
// the page.
func mutePage(t testing.TB, c chrome) {
	p := c.talk(t, nil)
	id := p.startCall()
	p.run("probe.spoke(0)")
	p.do(chromedp.KeyEvent("m"))
	p.until("muted", "document.getElementById('mute').getAttribute('aria-pressed') === 'true'")
	p.say("this must not be heard")
	p.do(chromedp.KeyEvent("m"))
	p.ask("when do you open")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("its end", "document.getElementById('status').textContent === 'You hung up.'")
	waitEnded(t, c.api, id)
	if caller := c.recorded(t, id); !soundsLike(caller, "when do you open") || soundsLike(caller, "this must not be heard") {
		t.Errorf("the caller is recorded with %q", caller)
	}
}

// reloadPage checks that a reloaded page resumes its call and stays muted.
func reloadPage(t testing.TB, c chrome) {
	p := c.talk(t, nil)
	id := p.startCall()
	p.run("probe.spoke(0)")
	p.do(chromedp.KeyEvent("m"), chromedp.Reload())
	p.until("the call again", "document.documentElement.dataset.call === "+strconv.Quote(id))
	p.until("connected", "document.getElementById('state').dataset.state === 'listening'")
	p.say("this must not be heard")
	if got := eval[string](p, "document.getElementById('mute').getAttribute('aria-pressed') + ' ' + document.getElementById('status').textContent"); got != "true Connected. You are muted." {
		t.Errorf("muted before the reload, the page says %q", got)
	}
	p.do(chromedp.KeyEvent("m"))
	p.ask("when do you open")
	if heard := p.heard(); !soundsLike(heard, "we open at 9 tomorrow, and we close at 6.") {
		t.Errorf("the page could play %q", heard)
	}
	p.do(chromedp.Click(chromedp.CSS("#hangup")))
	c.checkHungUp(t, id)
	if caller := c.recorded(t, id); soundsLike(caller, "this must not be heard") {
		t.Errorf("the caller is recorded with %q", caller)
	}
	if left := eval[bool](p, "sessionStorage.length === 0"); !left {
		t.Error("the secret of an ended call is still stored")
	}
}

// networkLost checks that the call continues after five seconds without media. Then the network path is lost
// permanently, as when a phone leaves its wireless network, and the call must continue again.
func networkLost(t testing.TB, c chrome) {
	between, other := startRelay(t, c), startRelay(t, c)
	w := ticket(t, c.api)
	p := c.talk(t, map[string]any{"port": between.Addr().Port()})
	if j := p.join(w); j.Code != "" {
		t.Fatalf("joined with %+v", j)
	}
	p.run("probe.spoke(0)")
	if between.Stats().There.Out == 0 {
		t.Fatal("the media does not go through the relay")
	}
	between.Cut(true)
	time.Sleep(5 * time.Second) // duration of the loss
	between.Cut(false)
	p.until("connected", "probe.call.state === 'listening'")
	p.ask("when do you open")
	p.until("an answer", "probe.events.some((e) => e.role === 'agent' && e.final && e.text.startsWith('We open'))")
	p.run("probeOptions.port = " + strconv.Itoa(int(other.Addr().Port())))
	between.Cut(true)
	p.until("the lost connection", "probe.call.state === 'reconnecting'")
	p.until("connected", "probe.call.state === 'listening'")
	p.ask("have you the odyssey")
	p.until("another answer", "probe.events.some((e) => e.role === 'agent' && e.final && e.text.startsWith('Yes, 2'))")
	if other.Stats().Back.Out == 0 {
		t.Error("the media does not use the other path")
	}
	t.Logf("%q", eval[[]string](p, "probe.events.filter((e) => e.type === 'state').map((e) => Math.round(e.at) + ' ' + e.state)"))
	p.run("probe.call.hangUp().then(() => {})")
	c.checkHungUp(t, w.CallID)
}

// keysAndDevices checks that the agent receives keys that are pressed on the page, and that microphone and speaker can
// be chosen from the page's lists.
func keysAndDevices(t testing.TB, c chrome) {
	p := c.talk(t, map[string]any{"asIs": true}) // the default devices of the browser
	id := p.startCall()
	p.until("the names of devices", "document.getElementById('microphone').options.length > 1")
	for _, list := range []string{"microphone", "speaker"} {
		p.run("(() => { const l = document.getElementById('" + list + "'); if (l.options.length < 2) return; l.selectedIndex = l.options.length - 1; l.dispatchEvent(new Event('change')); })()")
	}
	p.until("another microphone", "probe.peers.at(-1).getSenders()[0].track.getSettings().deviceId === document.getElementById('microphone').value")
	p.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
	p.do(chromedp.Click("//div[@id='keypad']/button[text()='4']"), chromedp.KeyEvent("2#"))
	p.until("the received keys", "[...document.querySelectorAll('#lines .caller')].some((l) => l.textContent.includes('42#'))")
	if fault := eval[string](p, "document.getElementById('error').textContent"); fault != "" {
		t.Errorf("the page says %q", fault)
	}
	p.do(chromedp.Click(chromedp.CSS("#hangup")))
	c.checkHungUp(t, id)
}

// chooseDevices checks with the devices of the browser that a page prefers remembered ones, switches them within its
// call, keeps the ones in use if a choice fails, and learns of changes.
func chooseDevices(t testing.TB, c chrome) {
	w := ticket(t, c.api)
	p := c.talk(t, map[string]any{"asIs": true})
	// Browsers show the devices after the microphone was allowed.
	p.run(`navigator.mediaDevices.getUserMedia({ audio: true }).then((s) => s.getTracks().forEach((t) => t.stop()))`)
	p.run(`(async () => { const { Parley } = await import("/rtc/parley.js"); Object.assign(probe, await Parley.devices()); })()`)
	if n := eval[[]int](p, "[probe.microphones.length, probe.speakers.length]"); n[0] < 3 || n[1] < 3 {
		t.Fatalf("%d microphones and %d speakers", n[0], n[1])
	}
	j := eval[joinResult](p, "probe.join({token: "+strconv.Quote(w.Token)+", url: "+strconv.Quote(w.URL)+
		"}, { microphone: probe.microphones[1].id, speaker: probe.speakers[1].id })")
	if j.Code != "" {
		t.Fatalf("joined with %+v", j)
	}
	p.run(`(async () => {
		const { call, microphones, speakers } = probe, seen = probe.seen = [];
		const used = () => microphones.findIndex((d) => d.id === call.microphoneId) + " " + speakers.findIndex((d) => d.id === call.speakerId);
		const track = () => probe.peers[0].getSenders()[0].track;
		seen.push(used());
		await call.setMicrophone(microphones[2].id);
		await call.setSpeaker(speakers[2].id);
		seen.push(used(), track().getSettings().deviceId === microphones[2].id, track().readyState);
		for (const set of ["setMicrophone", "setSpeaker"]) await call[set]("gone").catch((e) => seen.push(e.code));
		call.on("devicechange", (lists) => seen.push(lists.microphones.length === microphones.length, lists.speakers.length === speakers.length));
		navigator.mediaDevices.dispatchEvent(new Event("devicechange"));
		await probe.until(() => seen.length > 6, 5000, "the change");
		seen.push(used(), track().readyState, probe.sockets.length, probe.peers.length, call.state === "ended");
	})()`)
	want := "1 1; 2 2; true; live; microphone_missing; speaker_missing; true; true; 2 2; live; 1; 1; false"
	if got := eval[string](p, "probe.seen.join('; ')"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p.run("probe.call.hangUp().then(() => {})")
	c.checkHungUp(t, w.CallID)

	// A page whose microphone is denied can still be used in writing.
	denied := c.open(t, c.at("localhost")+"/talk", map[string]any{"asIs": true})
	w = ticket(t, c.api)
	join := "probe.join({token: " + strconv.Quote(w.Token) + ", url: " + strconv.Quote(w.URL) + "}"
	if j := eval[joinResult](denied, join+")"); j.Code != "microphone_denied" {
		t.Errorf("joined with %+v", j)
	}
	if j := eval[joinResult](denied, join+", { microphone: false })"); j.Code != "" {
		t.Errorf("joined in writing with %+v", j)
	}
	if code := eval[string](denied, "probe.call.setMicrophone('default').catch((e) => e.code)"); code != "microphone_denied" {
		t.Errorf("the microphone of the call: %s", code)
	}
	denied.run("probe.call.sendText('when do you open')")
	denied.until("an answer", "probe.events.some((e) => e.role === 'agent' && e.final && e.text.startsWith('We open'))")
	denied.run("probe.call.hangUp().then(() => {})")
	c.checkHungUp(t, w.CallID)
}

// startRelay starts an emulated network between pages and the server.
func startRelay(t testing.TB, c chrome) *relay.Relay {
	t.Helper()
	r := &relay.Relay{Target: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), c.server.web.endpoint.UDP().Port())}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// socketLost checks that the call continues on a new socket.
func socketLost(t testing.TB, c chrome) {
	w := ticket(t, c.api)
	p := c.talk(t, nil)
	p.join(w)
	p.run("probe.spoke(0)")
	p.run("probe.sockets.at(-1).close()")
	p.until("another socket", "probe.sockets.length === 2 && probe.events.some((e) => e.state === 'reconnecting')")
	p.until("connected", "probe.call.state === 'listening'")
	p.ask("when do you open")
	p.until("an answer", "probe.events.some((e) => e.role === 'agent' && e.final && e.text.startsWith('We open'))")
	p.run("probe.call.hangUp().then(() => {})")
	c.checkHungUp(t, w.CallID)
}

// friendlyErrors checks that the page explains why a call is impossible, and that no call is created.
func friendlyErrors(t testing.TB, c chrome) {
	for _, e := range []struct{ name, host, text string }{
		{"an insecure page", "insecure.test", "Microphones need a secure page."},
		{"a denied microphone", "localhost", "Microphone access is blocked."},
	} {
		p := c.open(t, c.at(e.host)+"/talk", map[string]any{"asIs": true})
		p.do(chromedp.Click(chromedp.CSS("#talk")))
		p.until("an error", "!document.getElementById('error').hidden")
		if got := eval[string](p, "document.getElementById('error').textContent"); !strings.HasPrefix(got, e.text) {
			t.Errorf("%s: the page says %q", e.name, got)
		}
		if got := eval[string](p, "document.activeElement.id"); got != "talk" {
			t.Errorf("%s: the focus is on %q", e.name, got)
		}
	}
	p := c.talk(t, nil)
	p.run("AbortSignal.timeout = (ms) => { probe.timeout = ms; const c = new AbortController(); setTimeout(() => c.abort()); return c.signal; }")
	p.run("window.fetch = (_, { signal } = {}) => new Promise((_, no) => signal?.addEventListener('abort', () => no(signal.reason)))")
	p.do(chromedp.Click(chromedp.CSS("#talk")))
	p.until("an error", "!document.getElementById('error').hidden")
	if got := eval[string](p, "probe.timeout + ' ' + document.getElementById('error').textContent"); !strings.HasPrefix(got, "10000 The service is unreachable.") {
		t.Errorf("an unresponsive service: the page says %q", got)
	}
	p = c.talk(t, nil)
	w := ticket(t, c.api)
	w.Token += "x"
	if j := p.join(w); j.Code != "token_invalid" {
		t.Errorf("joined with a forged token: %+v", j)
	}
}

// hangUpBeforeStart checks that no call is requested if the visitor hangs up before the call starts.
func hangUpBeforeStart(t testing.TB, c chrome) {
	p := c.talk(t, nil)
	p.run("navigator.mediaDevices.getUserMedia = () => new Promise(() => { probe.asked = true; })")
	for name, step := range map[string]chromedp.Action[chromedp.Void]{"the key": chromedp.KeyEvent(kb.Escape), "the button": chromedp.Click(chromedp.CSS("#hangup"))} {
		p.run("probe.asked = false")
		p.do(chromedp.Click(chromedp.CSS("#talk")))
		p.until("the question for the microphone", "probe.asked")
		p.do(step)
		p.until("its end by "+name, "document.getElementById('status').textContent === 'You hung up.'")
		if calm := eval[bool](p, "document.getElementById('error').hidden && document.getElementById('hangup').disabled && document.activeElement.id === 'talk'"); !calm {
			t.Errorf("%s: the page is not in its initial state", name)
		}
	}
	if orders := eval[int](p, "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/talk/token')).length"); orders != 0 {
		t.Errorf("%d calls were requested", orders)
	}
}
