package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

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
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string]("(async () => {"+script+"})()", func(e *runtime.EvaluateParams) { chromedp.EvalAwaitPromise(e) }))
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
			await stage.wait(50);
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
			"a secret that the service did not wait for", `
			await stage.join();
			stage.service = stage.refuses("join_timeout");
			return await stage.why(stage.resume()) + " " + stage.kept()?.resume;`,
			"ParleyError join_timeout: The service waited for too long. Try again. secret1",
		},
		{
			"an answer that comes twice, as to a restart before", `
			const call = await stage.join(), faults = [];
			call.on("error", (e) => faults.push(e.code));
			stage.service = (ws, m) => setTimeout(() => {
				stage.takes(ws, m);
				ws.say({ type: "answer", sdp: "old", call_id: "call", resume: "secret1" });
			});
			stage.sockets[0].close();
			await stage.wait(50);
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
			await stage.wait(50);
			return states.join(" ");`,
			"connecting hearing speaking thinking",
		},
	} {
		t.Run(scene.name, func(t *testing.T) {
			if got := play(t, scene.script); got != scene.want {
				t.Errorf("%q, want %q", got, scene.want)
			}
		})
	}
}
