package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/xuri/excelize/v2"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// guideBlock returns the only code block of a page in a language.
func guideBlock(t *testing.T, page, language string) string {
	t.Helper()
	for _, b := range blocks(t) {
		if b.page == page && b.language == language {
			return b.text
		}
	}
	t.Fatalf("%s has no block in %s", page, language)
	return ""
}

// writeProgram writes a program of the guide to a new folder, and returns the command that runs it.
func writeProgram(t *testing.T, language, text string) []string {
	t.Helper()
	dir := t.TempDir()
	name, args := "main.mjs", []string{"node"}
	switch language {
	case "python":
		name, args = "main.py", []string{"python3"}
	case "ts":
		text = untyped(text)
	case "go":
		name, args = "main.go", []string{"go"}
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%s is not installed", args[0])
	}
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if language != "go" {
		return append(args, file)
	}
	program := filepath.Join(dir, "main")
	c := exec.CommandContext(t.Context(), "go", "build", "-o", program, file)
	c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{program}
}

// output collects what a program prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// background runs a program and its children until the end of the test, and returns what it prints.
func background(t *testing.T, dir string, environ []string, args ...string) *output {
	t.Helper()
	var out output
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, append(os.Environ(), environ...), &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM) // it may have ended
		_ = c.Wait()
	})
	return &out
}

// send sends a request when the server accepts connections, and returns the status and body of the response.
func send(t *testing.T, method, url string, header http.Header, body string) (status int, response string) {
	t.Helper()
	eventually(t, url+" answers", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(r.Header, header)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		status, response = answer.StatusCode, string(b)
		return err == nil
	})
	return status, response
}

// TestDocsWebhookReceivers runs the receivers of docs/guide/webhooks.md with valid, altered and old requests.
func TestDocsWebhookReceivers(t *testing.T) {
	t.Parallel()
	const page, secret = "docs/guide/webhooks.md", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := strings.TrimSpace(guideBlock(t, page, "json"))
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"ts", "python", "go"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			program := writeProgram(t, language, guideBlock(t, page, language))
			out := background(t, "", []string{"WEBHOOK_SECRET=" + secret, "PORT=" + port, "PYTHONUNBUFFERED=1"}, program...)
			for _, c := range []struct {
				name, sent, more string
				age              time.Duration
				want             int
			}{
				{"valid", body, "", 0, http.StatusNoContent},
				{"again", body, "", 0, http.StatusNoContent},
				{"rotated", body, "v1,AAAA v1,bm90IHRoZSBzaWduYXR1cmUgb2YgdGhlIGJvZHkhIQ== ", 0, http.StatusNoContent},
				{"altered", body + " ", "", 0, http.StatusUnauthorized},
				{"old", body, "", time.Hour, http.StatusUnauthorized},
				{"of the future", body, "", -time.Hour, http.StatusUnauthorized},
				{"unsigned", body, "none", 0, http.StatusUnauthorized},
			} {
				at := time.Now().Add(-c.age)
				signature, err := signer.Sign("evt_1", at, []byte(body))
				if err != nil {
					t.Fatal(err)
				}
				h := http.Header{"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}}
				if c.more != "none" {
					h.Set("Webhook-Signature", c.more+signature)
				}
				if status, _ := send(t, http.MethodPost, "http://127.0.0.1:"+port+"/", h, c.sent); status != c.want {
					t.Errorf("%s: %d, want %d: %s", c.name, status, c.want, out)
				}
			}
			eventually(t, "the event is printed", func() bool { return strings.Contains(out.String(), "call_ended") })
			if n := strings.Count(out.String(), "call_01M8C0K2AZ7B0QAYQH362Y6JGG"); n != 1 {
				t.Errorf("the event was handled %d times: %s", n, out)
			}
		})
	}
}

// TestDocsToolServer runs the server of docs/guide/tools.md.
func TestDocsToolServer(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	text := strings.ReplaceAll(guideBlock(t, "docs/guide/tools.md", "python"), "8000", port)
	background(t, "", nil, writeProgram(t, "python", text)...)
	key := http.Header{"Authorization": {"Bearer change-me"}}
	for _, c := range []struct {
		key        http.Header
		sent, want string
		status     int
	}{
		{key, `{"order": "471100"}`, `"day": "Tuesday"`, http.StatusOK},
		{key, `{"order": "1"}`, "no such order", http.StatusOK},
		{http.Header{}, `{"order": "471100"}`, "", http.StatusUnauthorized},
	} {
		if status, body := send(t, http.MethodPost, "http://127.0.0.1:"+port+"/orders", c.key, c.sent); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.sent, status, body, c.status, c.want)
		}
	}
}

// TestDocsInBrowser opens the documentation and a page of the guide in Chromium.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()
	c := openChrome(t)
	t.Run("web call", func(t *testing.T) { embedWebCall(t, c) })
	t.Run("pages", func(t *testing.T) { readPages(t, c) })
	t.Run("explorer", func(t *testing.T) { explore(t, c) })
}

// exampleCall is the folder of the page that docs/guide/web-call.md shows.
const exampleCall = "docs/examples/web-call"

// TestDocsShowExample checks that the guide shows the files of the example as they are.
func TestDocsShowExample(t *testing.T) {
	var shown []string
	for _, b := range blocks(t) {
		if b.page == "docs/guide/web-call.md" && b.language != "sh" {
			shown = append(shown, b.text)
		}
	}
	want := []string{read(t, exampleCall+"/server.mjs"), read(t, exampleCall+"/index.html"), read(t, exampleCall+"/app.js")}
	if !slices.Equal(shown, want) {
		t.Error("the code of docs/guide/web-call.md differs from docs/examples/web-call")
	}
}

// TestDocsInstallPackage runs the commands that install the package of the browser module, next to a clone of the
// repository, and imports the module.
func TestDocsInstallPackage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	dir := t.TempDir()
	root, err := filepath.Abs(".")
	if err == nil {
		err = errors.Join(os.Symlink(root, filepath.Join(dir, "parley")), os.Mkdir(filepath.Join(dir, "site"), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	var scripts []string
	for _, b := range blocks(t) {
		if b.page == "docs/guide/web-call.md" && b.language == "sh" && strings.Contains(b.text, "npm pack") {
			scripts = append(scripts, b.text)
		}
	}
	if len(scripts) != 1 {
		t.Fatalf("the commands are %q", scripts)
	}
	c := exec.CommandContext(t.Context(), "bash", "-euc", scripts[0]+`
		node --input-type=module --eval 'import { Parley } from "@parley-voice/web"; process.exit(Parley.resumable() ? 1 : 0)'`)
	c.Dir, c.Env = dir, append(os.Environ(), "npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false", "npm_config_cache="+filepath.Join(dir, "cache"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// embedWebCall runs the servers and the page of the example.
func embedWebCall(t *testing.T, c chrome) {
	t.Helper()
	node := []string{"node", "server.mjs"}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	program := filepath.Join(t.TempDir(), "server")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "server.go")
	build.Dir = exampleCall
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("sound", func(t *testing.T) {
		url := serveExample(t, c, node)
		inTimeWithin(t, browserLate, func(t testing.TB) { talkOnExample(t, c, url) })
	})
	t.Run("text", func(t *testing.T) { typeOnExample(t, c, serveExample(t, c, []string{program})) })
}

// serveExample starts a server of the example and returns its address. Requests of other sites must be refused.
func serveExample(t *testing.T, c chrome, program []string) string {
	t.Helper()
	port := freePort(t)
	out := background(t, exampleCall, []string{"PARLEY_API_URL=" + c.server.publicURL, "PARLEY_API_KEY=" + c.api.Key, "PORT=" + port}, program...)
	url := "http://127.0.0.1:" + port
	c.permit(t, url, "granted")
	for _, r := range []struct {
		method, path, site string
		status             int
	}{
		{http.MethodGet, "/", "", http.StatusOK},
		{http.MethodGet, "/parley.js", "", http.StatusOK},
		{http.MethodGet, "/server.mjs", "", http.StatusNotFound},
		{http.MethodPost, "/call", "cross-site", http.StatusForbidden},
		{http.MethodPost, "/call", "", http.StatusForbidden},
	} {
		if status, body := send(t, r.method, url+r.path, http.Header{"Sec-Fetch-Site": {r.site}}, ""); status != r.status {
			t.Errorf("%s %s from %q: %d, want %d: %s %s", r.method, r.path, r.site, status, r.status, body, out)
		}
	}
	return url
}

const (
	exampleState = "document.getElementById('state').textContent"
	exampleLines = "[...document.querySelectorAll('#lines li')].map((l) => l.textContent)"
)

// checkExample checks that the page met no error, and is not wider than a phone.
func (p tab) checkExample() {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(390, 844))
	if wide := eval[int](p, "document.documentElement.scrollWidth"); wide > 390 {
		p.t.Errorf("the page is %d pixels wide", wide)
	}
	if errs := eval[[]string](p, "[...probe.errors, document.getElementById('error').textContent].filter(Boolean)"); len(errs) > 0 {
		p.t.Errorf("the page says %q", errs)
	}
}

// talkOnExample checks that a visitor talks, loses the connection, and hangs up.
func talkOnExample(t testing.TB, c chrome, url string) {
	t.Helper()
	p := c.open(t, url, nil)
	p.do(chromedp.Click(chromedp.CSS("#start")))
	p.until("the greeting", exampleLines+"[0]?.startsWith('Agent: Hello, this is Parley')")
	p.run("probe.spoke(0)")
	p.ask("when do you open")
	p.until("an answer", exampleLines+".some((l) => l.startsWith('You: ')) && "+exampleLines+".at(-1).startsWith('Agent: We open')")
	p.run("probe.sockets.at(-1).close()")
	p.until("the lost connection", exampleState+".endsWith('Reconnecting…')")
	p.until("the call again", exampleState+" === 'Listening' && probe.sockets.length === 2")
	p.checkExample()
	p.do(chromedp.Click(chromedp.CSS("#stop")))
	p.until("its end", exampleState+" === 'You hung up.' && document.activeElement.id === 'start'")
}

// typeOnExample checks that a visitor types with the keyboard only and without sound, that the call survives a reload,
// and that devices can be chosen later.
func typeOnExample(t *testing.T, c chrome, url string) {
	t.Helper()
	p := c.open(t, url, map[string]any{"asIs": true})
	p.run("window.sounds = []; { const A = Audio; window.Audio = class { constructor() { const a = new A(); sounds.push(a); return a; } } }")
	p.do(chromedp.KeyEvent(kb.Tab + kb.Tab + " " + kb.Tab + kb.Tab + " ")) // Without a microphone; Silence the agent
	p.do(chromedp.Focus(chromedp.CSS("#start")), chromedp.KeyEvent(kb.Enter))
	p.until("focus in the text box", "document.activeElement.id === 'text'")
	p.do(chromedp.KeyEvent("when do you open?" + kb.Enter))
	p.until("an answer", exampleLines+".includes('You: when do you open?') && "+exampleLines+".at(-1).startsWith('Agent: We open')")
	if silent := eval[bool](p, "sounds.length === 1 && sounds[0].muted && !sounds[0].paused"); !silent {
		t.Error("the agent is not silent")
	}
	p.do(chromedp.Reload())
	p.until("the call again", "document.activeElement.id === 'text' && document.getElementById('silent').checked")
	p.do(chromedp.KeyEvent("do you have the odyssey" + kb.Enter))
	p.until("another answer", exampleLines+".includes('You: do you have the odyssey') && "+exampleLines+".at(-1).startsWith('Agent: Yes, 2')")
	p.until("microphones", "document.getElementById('microphone').options.length > 1")
	p.run("{ const l = document.getElementById('microphone'); l.selectedIndex = l.options.length - 1; l.dispatchEvent(new Event('change')); }")
	p.until("a remembered microphone", "localStorage.microphone && localStorage.microphone === document.getElementById('microphone').value")
	p.checkExample()
	p.do(chromedp.Click(chromedp.CSS("#stop")))
	p.until("its end", exampleState+" === 'You hung up.'")
}

// readPages searches, follows a result, and checks that no page is wider than a phone or violates the policy.
func readPages(t *testing.T, c chrome) {
	t.Helper()
	p := c.open(t, c.server.publicURL+"/docs/guide", nil)
	p.do(chromedp.SendKeys(chromedp.CSS(".search input"), "MEDIA_timeout"))
	p.until("results", "document.querySelectorAll('#results li').length > 3 && document.querySelector('#results mark')")
	p.do(chromedp.SendKeys(chromedp.CSS(".search input"), kb.Enter))
	p.until("the section", "location.pathname.startsWith('/docs/guide/') && location.hash && document.querySelector(location.hash)")
	search(t, p)
	checkGuide(t, p, c.server.publicURL+"/docs/")
	p.do(chromedp.EmulateViewport(390, 844))
	pages := eval[[]string](p, "[...document.querySelectorAll('.menu a')].map((a) => a.href)")
	if len(pages) < 40 {
		t.Fatalf("%d pages", len(pages))
	}
	for _, url := range pages {
		p.do(chromedp.Navigate(url))
		p.until("the script", "document.querySelector('.menu.ready') && !document.querySelector('.search').hidden")
		if wide := eval[int](p, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s is %d pixels wide", url, wide)
		}
		if text := eval[string](p, "document.querySelector('article').innerText"); len(text) < 200 {
			t.Errorf("%s has the text %q", url, text)
		}
		if errs := eval[[]string](p, "probe.errors ?? []"); len(errs) > 0 {
			t.Errorf("%s: %q", url, errs)
		}
	}
}

// checkGuide checks the accessibility of the index, a page with code, results of a search and the changelog, on a phone
// and a wide screen, in both themes.
func checkGuide(t *testing.T, p tab, at string) {
	t.Helper()
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1440} {
			p.view(theme, width)
			for _, page := range []string{"guide", "guide/webhooks", "changelog"} {
				where := fmt.Sprintf("/docs/%s, %s, %d px", page, theme, width)
				p.do(chromedp.Navigate(at + page))
				p.until("the script", "document.querySelector('.menu.ready') && !document.querySelector('.search').hidden")
				dashtest.CheckAccessibility(p.ctx, t, where)
				p.do(chromedp.SendKeys(chromedp.CSS(".search input"), "retry"))
				p.until("results", "document.querySelector('#results a')")
				dashtest.CheckAccessibility(p.ctx, t, where+", results")
			}
		}
	}
}

// search checks which page is the first result, and that excerpts consist of whole words.
func search(t *testing.T, p tab) {
	t.Helper()
	for words, first := range map[string]string{
		"webhooks": "guide/webhooks", "troubleshooting": "guide/troubleshooting", "prompt": "guide/prompt", "latency": "guide/latency",
		"campaign": "guide/campaign", "law": "guide/law", "twilio": "guide/twilio", "tools": "guide/tools", "quickstart": "guide/quickstart",
		"glossary": "guide/reference/glossary", "metrics": "guide/reference/metrics", "web calls": "guide/reference/web-calls",
		"configuration": "guide/reference/configuration", "backup restore": "guide/reference/backup", "changes": "changelog",
	} {
		p.run("document.querySelector('.search input').value = " + strconv.Quote(words) + "; document.querySelector('.search input').dispatchEvent(new Event('input'))")
		p.until("results of "+words, "!document.querySelector('#results').hidden && document.querySelector('#results a')")
		if got := eval[string](p, "document.querySelector('#results a').pathname"); got != "/docs/"+first {
			t.Errorf("%s finds %s first, want %s", words, got, first)
		}
		pieces := eval[[]string](p, `[...document.querySelectorAll('#results a')].filter((a) => {
			const text = " " + (window.docsIndex.find((r) => "/docs/" + r.a === a.pathname + a.hash).t) + " ";
			return !text.includes(" " + a.querySelector("span").textContent.replace(/^… /, "").replace(/ …$/, "") + " ");
		}).map((a) => a.textContent)`)
		if len(pieces) > 0 {
			t.Errorf("%s: excerpts are cut inside words: %q", words, pieces)
		}
	}
}

// TestSoakFirstHour runs the commands of the Quickstart and of the README in a fresh clone.
func TestSoakFirstHour(t *testing.T) {
	soakOnly(t)
	dir := filepath.Join(openDir(t), "parley")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--local", ".", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shell := func(environ []string, script string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "bash", "-euc", script)
		c.Dir, c.Env = dir, append(os.Environ(), environ...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", script, err, out)
		}
		return string(out)
	}
	ports := []string{
		"PARLEY_HTTP_ADDR=127.0.0.1:" + freePort(t), "PARLEY_METRICS_ADDR=127.0.0.1:" + freePort(t), "PARLEY_WEBRTC_UDP_PORT=" + freePort(t),
	}
	url := "http://" + strings.TrimPrefix(ports[0], "PARLEY_HTTP_ADDR=")
	t.Run("quickstart", func(t *testing.T) { runQuickstart(t, dir, url, ports, shell) })
	t.Run("readme", func(t *testing.T) { runReadme(t, dir, url, ports, shell) })
}

func runQuickstart(t *testing.T, dir, url string, ports []string, shell func([]string, string) string) {
	t.Helper()
	var scripts []string
	for _, b := range blocks(t) {
		if b.page == "docs/guide/quickstart.md" {
			scripts = append(scripts, strings.ReplaceAll(b.text, "http://127.0.0.1:8080", url))
		}
	}
	if len(scripts) != 4 || strings.TrimSpace(scripts[0]) != "make run" {
		t.Fatalf("the Quickstart has the blocks %q", scripts)
	}
	out := background(t, dir, append(ports, "PARLEY_SIP_ADDR=127.0.0.1:"+freePort(t)), "bash", "-euc", scripts[0])
	printed := regexp.MustCompile(`parley_[0-9a-f]{64}`)
	eventuallyWithin(t, 10*time.Minute, "the demo prints a key", func() bool { return printed.MatchString(out.String()) })
	key, id := printed.FindString(out.String()), "call_01M8C0K2AZ7B0QAYQH362Y6JGG"
	environ := []string{"PARLEY_API_URL=" + url, "PARLEY_API_KEY=" + key}
	for _, script := range scripts[1:] {
		said := shell(environ, strings.NewReplacer("parley_change-me", key, "call_01M8C0K2AZ7B0QAYQH362Y6JGG", id).Replace(script))
		ids := regexp.MustCompile(`call_[0-9A-Z]{26}`).FindAllString(said, -1)
		if len(ids) == 0 {
			t.Fatalf("%s\nprints no call: %s", script, said)
		}
		id = ids[0]
	}
}

func runReadme(t *testing.T, dir, url string, ports []string, shell func([]string, string) string) {
	t.Helper()
	var script string
	for _, b := range blocks(t) {
		if b.page == "README.md" && strings.Contains(b.text, "bin/parley") {
			script += b.text
		}
	}
	before, after, ok := strings.Cut(script, "bin/parley serve &\n")
	if !ok {
		t.Fatalf("the README has no command that starts the server: %s", script)
	}
	environ := append(ports, "PARLEY_DATA_DIR="+openDir(t), "PARLEY_API_URL="+url)
	before = strings.NewReplacer("cp docs/example.yaml", "sed s/change-me/secret/ docs/example.yaml >", "=…", "=k", "0.0.0.0:5060", "127.0.0.1:"+freePort(t), "203.0.113.7", "127.0.0.1").Replace(before)
	key := regexp.MustCompile(`parley_[0-9a-f]{64}`).FindString(shell(environ, before+"\necho \"$KEY\"\n"))
	if key == "" {
		t.Fatal("no key was printed")
	}
	exports := regexp.MustCompile(`(?m)^export .*\n`).FindAllString(before, -1)
	background(t, dir, environ, "bash", "-euc", strings.Join(exports, "")+"exec bin/parley serve")
	send(t, http.MethodGet, url+"/readyz", nil, "")
	list := excelize.NewFile()
	for cell, text := range map[string]string{"A1": "phone", "B1": "name", "A2": "+12125550123", "B2": "Ada"} {
		if err := list.SetCellStr("Sheet1", cell, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := list.SaveAs(filepath.Join(dir, "contacts.xlsx")); err != nil {
		t.Fatal(err)
	}
	said := shell(append(environ, "KEY="+key, "PARLEY_API_KEY="+key), strings.ReplaceAll(after, "http://127.0.0.1:8080", url))
	for _, want := range []string{`"call_id"`, "cmp_"} {
		if !strings.Contains(said, want) {
			t.Errorf("the commands print no %s: %s", want, said)
		}
	}
}
