package jsclient

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

// openHarness starts Chromium. It returns a function that runs a script with parley.js and harness.js in a new page.
func openHarness(t *testing.T) func(t *testing.T, script string) string {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (apt-get install chromium)")
	}
	mux := http.NewServeMux()
	mux.Handle("/rtc/", Handler())
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/harness.html") })
	mux.HandleFunc("/harness.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/harness.js") })
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
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // waits until Chromium has stopped writing
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

func TestCall(t *testing.T) {
	play := openHarness(t)
	for _, tt := range []struct{ name, script, want string }{
		{
			"a call", `
			const call = await harness.join();
			return call.id + " " + call.state + " " + harness.saved().resume;`,
			"call listening secret1",
		},
		{
			"a slow microphone permission", `
			harness.delayPermission();
			const joining = harness.join();
			await harness.until(() => harness.permissionRequests);
			await harness.wait(20);
			const socketsBefore = harness.sockets.length;
			harness.allow();
			return socketsBefore + " sockets, then " + await harness.why(joining);`,
			"0 sockets, then joined",
		},
		{
			"a join timeout", `
			harness.service = harness.refuses("join_timeout");
			return harness.why(harness.join());`,
			"ParleyError join_timeout: Joining took too long. Try again.",
		},
		{
			"a secret that is still valid", `
			await harness.join();
			const left = [];
			for (const code of ["join_timeout", "unavailable", "sdp_invalid"]) {
				harness.service = harness.refuses(code);
				left.push(await harness.why(harness.resume()) + " " + harness.saved()?.resume);
			}
			return left.join("; ");`,
			"ParleyError join_timeout: Joining took too long. Try again. secret1; " +
				"ParleyError unavailable: The service cannot take calls right now. Try again in a moment. secret1; " +
				"ParleyError sdp_invalid: text from the service undefined",
		},
		{
			"typed words without a microphone", `
			const call = await harness.join(undefined, { microphone: false }), codes = [];
			call.sendText(" when do\n you open? ");
			for (const text of [" ", "x".repeat(1001)]) try { call.sendText(text); } catch (e) { codes.push(e.code); }
			harness.sockets[0].close();
			await harness.until(() => call.state === "reconnecting");
			try { call.sendText("lost"); } catch (e) { codes.push(e.code); }
			const texts = harness.sockets[0].sent.filter((m) => m.type === "text").map((m) => m.text);
			return [harness.permissionRequests, call.hasMicrophone, harness.saved().silent, ...texts, ...codes].join("; ");`,
			"0; false; true; when do you open?; text_invalid; text_invalid; text_unsent",
		},
		{
			"microphone errors", `
			const codes = [];
			for (const name of ["NotAllowedError", "SecurityError", "NotFoundError", "OverconstrainedError", "NotReadableError", "AbortError"]) {
				harness.microphoneError = name;
				codes.push((await harness.why(harness.join())).split(/[ :]/)[1]);
			}
			return codes.join(" ") + "; " + harness.sent();`,
			"microphone_denied microphone_denied microphone_missing microphone_missing microphone_busy microphone_busy; ",
		},
		{
			"remembered devices", `
			const call = await harness.join(undefined, { microphone: "desk", speaker: "headset" });
			const { deviceId, echoCancellation } = harness.constraints[0];
			return [JSON.stringify(deviceId), echoCancellation, call.microphoneId, call.speakerId].join(" ");`,
			`{"exact":"desk"} true desk headset`,
		},
		{
			"a remembered microphone that is gone", `
			const call = await harness.join(undefined, { microphone: "gone" });
			harness.microphoneError = "NotAllowedError";
			return call.microphoneId + " " + await harness.why(harness.join(undefined, { microphone: "desk" })) + " " + harness.permissionRequests;`,
			"default ParleyError microphone_denied: Microphone access is blocked. Allow it in the browser's settings for this page, then try again. 3",
		},
		{
			"a remembered speaker that is gone", `
			const faults = [], call = await harness.join(undefined, { speaker: "gone" });
			call.on("error", (e) => faults.push(e.code));
			for (const id of ["denied", "other"]) await call.setSpeaker(id).catch((e) => faults.push(e.code));
			await harness.wait();
			return [call.state, "speaker " + call.speakerId, ...faults.sort()].join("; ");`,
			"listening; speaker ; speaker_denied; speaker_missing; speaker_missing",
		},
		{
			"another microphone", `
			const call = await harness.join();
			call.mute();
			await call.setMicrophone("desk");
			return [call.microphoneId, harness.sockets.length, harness.peers.length, ...harness.tracks.map((t) => t.stopped + " " + t.enabled)].join("; ");`,
			"desk; 1; 1; true false; false false",
		},
		{
			"two choices of a microphone", `
			const call = await harness.join();
			harness.delayPermission();
			const first = call.setMicrophone("first"), allowFirst = harness.allow;
			await harness.until(() => harness.permissionRequests === 2);
			harness.prompt = Promise.resolve();
			await call.setMicrophone("last");
			allowFirst();
			await first;
			return call.microphoneId + " " + harness.tracks.map((t) => t.stopped);`,
			"last true,false,true",
		},
		{
			"a microphone that cannot be opened", `
			const call = await harness.join();
			harness.microphoneError = "NotFoundError";
			return await harness.why(call.setMicrophone("gone")) + " " + call.microphoneId + " " + harness.tracks[0].stopped;`,
			"ParleyError microphone_missing: No microphone found. Connect one, then try again. default false",
		},
		{
			"a device change", `
			const { Parley } = await import("/rtc/parley.js"), lists = [];
			const stop = Parley.watchDevices(({ microphones, speakers }) => lists.push([microphones, speakers].every(Array.isArray)));
			const change = async () => { navigator.mediaDevices.dispatchEvent(new Event("devicechange")); await harness.wait(50); };
			await change();
			stop();
			const call = await harness.join();
			call.on("devicechange", ({ microphones, speakers }) => lists.push([microphones, speakers].every(Array.isArray)));
			await change();
			harness.sockets[0].say({ type: "bye", reason: "agent_hangup" });
			await change();
			return lists.join(" ");`,
			"true true",
		},
		{
			"muted from the beginning", `
			const call = await harness.join(undefined, { muted: true }), before = [call.muted, harness.tracks[0].enabled];
			call.mute(false);
			const again = await harness.resume({ muted: true });
			return [before, call.muted, again.muted, harness.tracks[1].enabled].join("; ");`,
			"true,false; false; false; true",
		},
		{
			"without sound", `
			const call = await harness.join(undefined, { microphone: false, playback: false }), lines = [];
			call.on("transcript", (line) => lines.push(line.role + " " + line.text));
			for (const role of ["caller", "agent"]) harness.sockets[0].say({ type: "event", event: "transcript", role, text: "hello", final: true, turn: 1 });
			await harness.until(() => lines.length === 2);
			const before = [call.playback, harness.audio.muted];
			const again = await harness.resume(), after = [again.playback, harness.audio.muted, again.hasMicrophone];
			again.setPlayback();
			return [before, after, [again.playback, harness.audio.muted, harness.saved().quiet], lines, harness.permissionRequests].join("; ");`,
			"false,true; false,true,false; true,false,false; caller hello,agent hello; 0",
		},
		{
			"a second answer, as to an earlier restart", `
			const call = await harness.join(), faults = [];
			call.on("error", (e) => faults.push(e.code));
			let delivered = false;
			harness.service = async (ws, m) => {
				harness.accepts(ws, m);
				ws.say({ type: "answer", sdp: "old", call_id: "call", resume: "secret1" });
				await harness.wait();
				delivered = true;
			};
			harness.sockets[0].close();
			await harness.until(() => delivered);
			return [call.state, harness.saved().resume, ...faults].join(" ");`,
			"listening secret2",
		},
		{
			"events before the first listener", `
			harness.service = (ws, m) => setTimeout(() => {
				ws.say({ type: "event", event: "state", state: "hearing" });
				harness.accepts(ws, m);
				setTimeout(() => ws.say({ type: "event", event: "state", state: "speaking" }));
			});
			const call = await harness.join(), states = [];
			call.on("state", ({ state }) => {
				if (states.push(state) === 1) harness.sockets[0].say({ type: "event", event: "state", state: "thinking" });
			});
			await harness.until(() => states.length === 4);
			return states.join(" ");`,
			"connecting hearing speaking thinking",
		},
		{
			"canceled during the microphone permission", `
			harness.delayPermission();
			const page = new AbortController();
			let created = "";
			const joining = harness.why(harness.join(() => { created = ", a call is created"; return "t"; }, { signal: page.signal }));
			await harness.until(() => harness.permissionRequests);
			page.abort();
			const why = await joining;
			harness.allow();
			await harness.wait(20);
			return why + created + "; the microphone is closed: " + harness.tracks.every((t) => t.stopped) + ", of " + harness.tracks.length;`,
			"ParleyError aborted: Joining was canceled.; the microphone is closed: true, of 1",
		},
		{
			"canceled while the call is created", `
			const page = new AbortController();
			let created = false;
			const joining = harness.why(harness.join(() => new Promise(() => { created = true; }), { signal: page.signal }));
			await harness.until(() => created);
			page.abort();
			return await joining + "; the microphone is closed: " + harness.tracks[0].stopped;`,
			"ParleyError aborted: Joining was canceled.; the microphone is closed: true",
		},
		{
			"canceled before media flows", `
			harness.service = () => {};
			const page = new AbortController();
			const joining = harness.why(harness.join(undefined, { signal: page.signal }));
			await harness.until(harness.sent);
			page.abort();
			return await joining + " " + harness.sent();`,
			"ParleyError aborted: Joining was canceled. join bye",
		},
		{
			"canceled before joining", `
			return await harness.why(harness.join(undefined, { signal: AbortSignal.abort() })) + " " + harness.permissionRequests;`,
			"ParleyError aborted: Joining was canceled. 0",
		},
		{
			"canceled after joining", `
			const page = new AbortController();
			const call = await harness.join(undefined, { signal: page.signal });
			page.abort();
			await harness.wait(20);
			return call.state + " " + harness.sent();`,
			"listening join",
		},
		{
			"an invalid URL", `
			return harness.why(harness.join({ token: "t", url: "nowhere" }));`,
			"ParleyError network: The service cannot be reached. Check your connection, then try again.",
		},
		{
			"a browser without peer connections", `
			window.RTCPeerConnection = class { constructor() { throw new TypeError("no"); } };
			return harness.why(harness.join());`,
			"ParleyError unsupported: This browser does not support web calls.",
		},
		{
			"an error of the ticket function", `
			return harness.why(harness.join(() => { throw new RangeError("no more"); }));`,
			"RangeError undefined: no more",
		},
		{
			"mute state across reloads", `
			const call = await harness.join(), before = [call.muted, harness.tracks[0].enabled];
			call.mute();
			const again = await harness.resume();
			const now = [again.muted, harness.tracks[1].enabled];
			again.mute(false);
			const last = await harness.resume();
			return [before, now, [last.muted, harness.tracks[2].enabled]].join("; ");`,
			"false,true; true,false; false,true",
		},
		{
			"mute after the end", `
			const call = await harness.join();
			harness.sockets[0].say({ type: "bye", reason: "agent_hangup" });
			call.mute();
			return call.reason + " " + harness.saved();`,
			"agent_hangup null",
		},
		{
			"a refused restart", `
			const call = await harness.join();
			harness.service = (ws, m) => { if (m.type === "restart") { ws.say({ type: "error", code: "sdp_invalid", message: "" }); ws.close(); } };
			harness.peers[0].connectionState = "disconnected";
			harness.peers[0].onconnectionstatechange();
			await harness.until(() => harness.sent().endsWith("restart"));
			await harness.wait();
			return [harness.sent(), call.state, harness.saved()?.resume].join(" ");`,
			"join restart reconnecting secret1",
		},
		{
			"a late resumption", `
			const call = await harness.join();
			harness.service = harness.refuses("resume_unknown");
			harness.sockets[0].close();
			return await call.ended + " " + call.state + " " + harness.saved();`,
			"resume_unknown ended null",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := play(t, tt.script); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
