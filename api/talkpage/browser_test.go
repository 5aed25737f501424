package talkpage

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// notice is as long as the longest of the demo.
const notice = "No speech-to-text is configured: type, or let your browser recognize your speech. Model: a script that knows a few questions. " +
	"Voice: tones; install espeak-ng for words. For real providers, set PARLEY_DEEPGRAM_API_KEY, PARLEY_OPENAI_API_KEY, PARLEY_ELEVENLABS_API_KEY " +
	"and start the demo again."

// openPage serves the page with a client that needs no server, and opens Chromium.
func openPage(t *testing.T, typed bool) dashtest.Tab {
	t.Helper()
	h, err := (&Page{Agents: []string{"bookshop", "clinic"}, Notice: notice, Typed: typed, Caller: &calls{}}).Handler()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("/rtc/parley.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/client.js") })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return (&dashtest.Env{URL: server.URL}).Chrome(t)
}

// open opens the page anew at a size.
func open(b dashtest.Tab, theme string, width, height int64) {
	b.SetViewport(theme, width)
	b.Do(chromedp.EmulateViewport(width, height))
	b.Go("/talk")
	b.Until("document.querySelector('#no-turns') && !document.querySelector('#no-turns').hidden && !document.querySelector('#turns li')")
}

// call is a conversation of several turns.
const call = `
document.getElementById("talk").click();
new Promise((done) => { const look = () => window.call ? done() : setTimeout(look, 10); look(); }).then(() => new Promise((r) => setTimeout(r, 50))).then(() => {
	const said = (role, text, final = true) => window.call.emit("transcript", { role, text, final });
	said("agent", "Hello, Harbor Books. I can tell you when we open, look for a book, or hold one for you.");
	said("caller", "When do you open?");
	said("agent", "We are open Monday to Saturday, from 9 to 6.");
	said("caller", "Do you have The Odyssey, the translation by Emily Wilson, in hardcover and not in paperback?");
	said("agent", "Yes, 2 copies are here. Shall I keep one for you?");
	said("caller", "yes please", false);
	const metrics = { jitter_ms: 20, vad_ms: 180, asr_ms: 60, classifier_ms: 0.01, eou_wait_ms: 120, llm_ms: 208, tts_ms: 138, out_ms: 12 };
	window.call.emit("turn", { turn: 0, ending: "agent_done", metrics: { turn_ms: 112, tts_ms: 87, out_ms: 25 } });
	for (let turn = 1; turn < 3; turn++) window.call.emit("turn", { turn, ending: "agent_done", metrics: { turn_ms: 730 + turn, ...metrics } });
	window.call.emit("level", { microphone: 0.2, agent: 0.01 });
	window.call.emit("state", { state: "hearing" });
})`

// shown reports whether all elements are completely inside the window.
func shown(b dashtest.Tab, css string) bool {
	return dashtest.Read[bool](b, fmt.Sprintf(`(() => {
		const all = [...document.querySelectorAll(%q)].map((e) => e.getBoundingClientRect());
		return all.length > 0 && all.every((r) => r.height > 0 && r.top >= 0 && r.bottom <= innerHeight && r.left >= 0 && r.right <= innerWidth);
	})()`, css))
}

// TestExample checks the page of docs/examples/web-call: its button shows without scrolling, no size is too small for it,
// and axe finds nothing serious before and during a call.
func TestExample(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("../../docs/examples/web-call")))
	mux.HandleFunc("/parley.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/client.js") })
	mux.HandleFunc("POST /call", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b := (&dashtest.Env{URL: server.URL}).Chrome(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1440, 2560} {
			where := fmt.Sprintf("%s, %d px", theme, width)
			b.SetViewport(theme, width)
			b.Go("/")
			b.CheckAccessibility(where + ", ready")
			if !shown(b, "h1, #state, #start, #typed, #silent") {
				t.Errorf("%s: not all controls are in the window", where)
			}
			b.Run(strings.Replace(call, `"talk"`, `"start"`, 1))
			b.Until("document.querySelectorAll('#lines li').length === 5 && document.getElementById('state').textContent === 'Hearing you'")
			b.Run("document.querySelector('details').open = true")
			b.CheckAccessibility(where + ", in a call")
			if wide := dashtest.Read[int64](b, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s: the page is %d px wide", where, wide)
			}
			b.Run("window.call.hangUp()")
			b.Until("document.getElementById('state').textContent === 'You hung up.' && document.activeElement.id === 'start'")
		}
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestSizes checks that the page shows its controls without scrolling, before and during a call, and that axe finds
// nothing serious. On a phone the notice is folded, and the keyboard unfolds it.
func TestSizes(t *testing.T) {
	b := openPage(t, false)
	for _, theme := range []string{"light", "dark"} {
		for _, size := range []struct {
			width, height int64
			folded        bool
		}{{390, 664, true}, {1440, 800, false}, {2560, 1300, false}} {
			where := fmt.Sprintf("%s, %d px", theme, size.width)
			check := func(state, css string) {
				t.Helper()
				if !shown(b, css) {
					t.Errorf("%s, %s: not all of %s is in the window", where, state, css)
				}
				if wide := dashtest.Read[int64](b, "document.documentElement.scrollWidth"); wide > size.width {
					t.Errorf("%s, %s: the page is %d px wide", where, state, wide)
				}
				b.CheckAccessibility(where + ", " + state)
			}
			open(b, theme, size.width, size.height)
			if folded := !dashtest.Read[bool](b, "document.getElementById('notice').open"); folded != size.folded {
				t.Errorf("%s: the notice is folded: %v", where, folded)
			}
			check("ready", "h1, #state, #notice, #agent, #status, #talk, #typed")
			if size.folded {
				b.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
				check("unfolded", "#notice p")
				b.Do(chromedp.KeyEvent(kb.Enter))
			}
			b.Run(call)
			check("in a call", "h1, #state, #status, #mute, #hangup, .meter")
			if folded := size.folded; !folded {
				check("in a call", "#scroll, #text, #send, .turns")
			}
			if last := dashtest.Read[bool](b, "(() => { const s = document.getElementById('scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 2; })()"); !last {
				t.Errorf("%s: the last line is not in view", where)
			}
		}
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestFaults checks that the page shows "Not connected" after a refused call, and that an error disappears with its
// cause.
func TestFaults(t *testing.T) {
	b := openPage(t, false)
	open(b, "light", 1440, 900)
	look := `[document.getElementById("state").textContent, document.getElementById("talk").textContent, document.getElementById("talk").className, document.getElementById("error").textContent].join("|")`
	expect := func(when, want string) {
		t.Helper()
		if got := dashtest.Read[string](b, look); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	b.Run(`window.answer = window.fetch; window.fetch = async () => new Response('{"message": "All lines are busy."}', { status: 503 }); document.getElementById("talk").click()`)
	b.Until(`!document.getElementById("error").hidden`)
	expect("refused", "Not connected|Try again||All lines are busy.")
	b.Run(`document.getElementById("typed").click()`)
	expect("another choice", "Ready|Talk|primary|")
	b.Run(`document.getElementById("typed").click(); window.fetch = window.answer`)
	b.Run(call)
	b.Run(`window.call.emit("state", { state: "reconnecting" }); window.call.emit("error", { code: "text_unsent", message: "Not sent." })`)
	expect("lost", "Reconnecting|Talk|primary|Not sent.")
	b.Run(`window.call.emit("state", { state: "listening" })`)
	expect("connected again", "Listening|Talk|primary|")
	b.Run(`window.call.emit("error", { code: "microphone_lost", message: "No microphone." }); window.call.emit("state", { state: "reconnecting" }); window.call.emit("state", { state: "listening" })`)
	expect("no microphone", "Listening|Talk|primary|No microphone.")
}

// TestScrolledUp checks that new lines do not move a transcript in which the visitor has scrolled up.
func TestScrolledUp(t *testing.T) {
	b := openPage(t, true)
	open(b, "light", 390, 664)
	b.Run(call)
	b.Run(`document.getElementById("scroll").scrollTop = 0; window.call.emit("transcript", { role: "agent", text: "Is there anything else?", final: true })`)
	if top := dashtest.Read[float64](b, "document.getElementById('scroll').scrollTop"); top != 0 {
		t.Errorf("scrolled to %v", top)
	}
}

// TestPictures writes screenshots to the folder PARLEYTEST_PICTURES.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PARLEYTEST_PICTURES")
	if dir == "" {
		t.Skip("PARLEYTEST_PICTURES names a folder")
	}
	for _, typed := range []bool{false, true} {
		b := openPage(t, typed)
		for _, theme := range []string{"light", "dark"} {
			for _, size := range [][2]int64{{390, 844}, {1440, 900}, {2560, 1300}} {
				open(b, theme, size[0], size[1])
				for _, state := range []string{"ready", "call", "muted", "ended", "failed"} {
					switch state {
					case "call":
						b.Run(call)
					case "muted":
						b.Run(`document.getElementById(document.getElementById("mute").disabled ? "text" : "mute").click(); for (const d of document.querySelectorAll(".more details")) d.open = true`)
					case "ended":
						b.Run("window.call.hangUp()")
					case "failed":
						b.Run(`window.fetch = async () => new Response('{"message": "All lines are busy. Try again in a minute."}', { status: 503 }); document.getElementById("talk").click()`)
					}
					b.Run("new Promise((r) => setTimeout(r, 200))")
					name := fmt.Sprintf("talk-typed_%v-%s-%s-%d.png", typed, state, theme, size[0])
					if err := os.WriteFile(filepath.Join(dir, name), b.Picture(), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
