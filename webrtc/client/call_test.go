package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// openStage starts Chromium, and returns what plays a scene: it runs a script over
// parley.js and stage.js in a page that nothing was done in yet.
func openStage(t *testing.T) func(t *testing.T, script string) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (apt-get install chromium)")
	}
	mux := http.NewServeMux()
	mux.Handle("/rtc/", Handler())
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/stage.html") })
	mux.HandleFunc("/stage.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/stage.js") })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir())}
	for name, value := range map[string]any{
		"headless": "new", "disable-gpu": true, "disable-background-networking": true, "disable-component-update": true, "disable-sync": true, "disable-quic": true,
	} {
		options = append(options, chromedp.Flag(name, value))
	}
	allocator, quit := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(quit)
	ctx, leave := chromedp.NewContext(allocator)
	t.Cleanup(leave)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // waits until it writes no more
	return func(t *testing.T, script string) string {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(server.URL)); err != nil {
			t.Fatal(err)
		}
		soon, late := context.WithTimeout(ctx, 20*time.Second)
		defer late()
		got, err := chromedp.Run(soon, chromedp.Evaluate[string]("(async () => {"+script+"})()", func(e *runtime.EvaluateParams) { chromedp.EvalAwaitPromise(e) }))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// TestCall: what becomes of calls that browser and service seldom make such.
func TestCall(t *testing.T) {
	play := openStage(t)
	for _, scene := range []struct{ name, script, want string }{
		{
			"a call", `
			const call = await stage.join();
			return call.id + " " + call.state + " " + stage.kept().resume;`,
			"call listening secret1",
		},
		{
			"a visitor who thinks about the microphone", `
			stage.ponder();
			const joining = stage.join();
			await stage.until(() => stage.asked);
			await stage.wait(20);
			const meanwhile = stage.sockets.length;
			stage.allow();
			return meanwhile + " sockets, then " + await stage.why(joining);`,
			"0 sockets, then joined",
		},
		{
			"a service that hears nothing for too long", `
			stage.service = stage.refuses("join_timeout");
			return stage.why(stage.join());`,
			"ParleyError join_timeout: The service waited for too long. Try again.",
		},
		{
			"a secret that was not used", `
			await stage.join();
			const left = [];
			for (const code of ["join_timeout", "unavailable", "sdp_invalid"]) {
				stage.service = stage.refuses(code);
				left.push(await stage.why(stage.resume()) + " " + stage.kept()?.resume);
			}
			return left.join("; ");`,
			"ParleyError join_timeout: The service waited for too long. Try again. secret1; " +
				"ParleyError unavailable: No calls are taken now. Try again in a moment. secret1; " +
				"ParleyError sdp_invalid: told by the service undefined",
		},
		{
			"an answer that comes twice, as to a restart before", `
			const call = await stage.join(), faults = [];
			call.on("error", (e) => faults.push(e.code));
			let said = false;
			stage.service = async (ws, m) => {
				stage.takes(ws, m);
				ws.say({ type: "answer", sdp: "old", call_id: "call", resume: "secret1" });
				await stage.wait();
				said = true;
			};
			stage.sockets[0].close();
			await stage.until(() => said);
			return [call.state, stage.kept().resume, ...faults].join(" ");`,
			"listening secret2",
		},
		{
			"what was told before there were listeners", `
			stage.service = (ws, m) => setTimeout(() => {
				ws.say({ type: "event", event: "state", state: "hearing" });
				stage.takes(ws, m);
				setTimeout(() => ws.say({ type: "event", event: "state", state: "speaking" }));
			});
			const call = await stage.join(), states = [];
			call.on("state", ({ state }) => {
				if (states.push(state) === 1) stage.sockets[0].say({ type: "event", event: "state", state: "thinking" });
			});
			await stage.until(() => states.length === 4);
			return states.join(" ");`,
			"connecting hearing speaking thinking",
		},
		{
			"a page that gives up while the visitor thinks", `
			stage.ponder();
			const page = new AbortController();
			let ordered = "";
			const joining = stage.why(stage.join(() => { ordered = ", a call is ordered"; return "t"; }, { signal: page.signal }));
			await stage.until(() => stage.asked);
			page.abort();
			const why = await joining;
			stage.allow();
			await stage.wait(20);
			return why + ordered + "; the microphone is closed: " + stage.tracks.every((t) => t.stopped) + ", of " + stage.tracks.length;`,
			"ParleyError aborted: Joining was given up.; the microphone is closed: true, of 1",
		},
		{
			"a page that gives up while a call is ordered", `
			const page = new AbortController();
			let ordered = false;
			const joining = stage.why(stage.join(() => new Promise(() => { ordered = true; }), { signal: page.signal }));
			await stage.until(() => ordered);
			page.abort();
			return await joining + "; the microphone is closed: " + stage.tracks[0].stopped;`,
			"ParleyError aborted: Joining was given up.; the microphone is closed: true",
		},
		{
			"a page that gives up while there is no media", `
			stage.service = () => {};
			const page = new AbortController();
			const joining = stage.why(stage.join(undefined, { signal: page.signal }));
			await stage.until(stage.told);
			page.abort();
			return await joining + " " + stage.told();`,
			"ParleyError aborted: Joining was given up. join bye",
		},
		{
			"a page that gave up before", `
			return await stage.why(stage.join(undefined, { signal: AbortSignal.abort() })) + " " + stage.asked;`,
			"ParleyError aborted: Joining was given up. 0",
		},
		{
			"a page that gives up once it has joined", `
			const page = new AbortController();
			const call = await stage.join(undefined, { signal: page.signal });
			page.abort();
			await stage.wait(20);
			return call.state + " " + stage.told();`,
			"listening join",
		},
		{
			"an address of no socket", `
			return stage.why(stage.join({ token: "t", url: "nowhere" }));`,
			"ParleyError network: The service cannot be reached. Check the connection, and try again.",
		},
		{
			"a browser that makes no connection", `
			window.RTCPeerConnection = class { constructor() { throw new TypeError("no"); } };
			return stage.why(stage.join());`,
			"ParleyError unsupported: This browser cannot make web calls.",
		},
		{
			"a page that gets no token", `
			return stage.why(stage.join(() => { throw new RangeError("no more"); }));`,
			"RangeError undefined: no more",
		},
		{
			"a muted visitor whose page is loaded anew", `
			const call = await stage.join(), before = [call.muted, stage.tracks[0].enabled];
			call.mute();
			const again = await stage.resume();
			const now = [again.muted, stage.tracks[1].enabled];
			again.mute(false);
			const last = await stage.resume();
			return [before, now, [last.muted, stage.tracks[2].enabled]].join("; ");`,
			"false,true; true,false; false,true",
		},
		{
			"a call that is muted once it is over", `
			const call = await stage.join();
			stage.sockets[0].say({ type: "bye", reason: "agent_hangup" });
			call.mute();
			return call.reason + " " + stage.kept();`,
			"agent_hangup null",
		},
		{
			"a restart that the service cannot answer", `
			const call = await stage.join();
			stage.service = (ws, m) => { if (m.type === "restart") { ws.say({ type: "error", code: "sdp_invalid", message: "" }); ws.close(); } };
			stage.peers[0].connectionState = "disconnected";
			stage.peers[0].onconnectionstatechange();
			await stage.until(() => stage.told().endsWith("restart"));
			await stage.wait();
			return [stage.told(), call.state, stage.kept()?.resume].join(" ");`,
			"join restart reconnecting secret1",
		},
		{
			"a resumption that comes too late", `
			const call = await stage.join();
			stage.service = stage.refuses("resume_unknown");
			stage.sockets[0].close();
			return await call.ended + " " + call.state + " " + stage.kept();`,
			"resume_unknown ended null",
		},
	} {
		t.Run(scene.name, func(t *testing.T) {
			if got := play(t, scene.script); got != scene.want {
				t.Errorf("%q, want %q", got, scene.want)
			}
		})
	}
}
