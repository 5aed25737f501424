package dashtest

import (
	"context"
	"os/exec"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watch notes what goes wrong in a page: errors, refusals of the policy, and
// dialogs, which only a script of somebody else's would open.
const watch = `
window.faults = [];
addEventListener("error", (e) => faults.push("error: " + (e.message ?? e.target?.src ?? e.type)), true);
addEventListener("unhandledrejection", (e) => faults.push("rejection: " + e.reason));
document.addEventListener("securitypolicyviolation", (e) => faults.push("policy: " + e.violatedDirective + " " + e.blockedURI));
for (const f of ["alert", "confirm", "prompt", "print"]) window[f] = (v) => { faults.push(f + ": " + v); };
const told = console.error;
console.error = (...all) => { faults.push("console: " + all.join(" ")); told(...all); };
`

// A Tab is a page of a real browser.
type Tab struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // the tab's
	house *House
}

// Chrome opens Chromium with nobody signed in; a test without it is skipped.
func (h *House) Chrome(t *testing.T) Tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (apt-get install chromium)")
	}
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
	tab := Tab{t, ctx, h}
	tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
		return err
	}))
	return tab
}

// SignIn signs somebody in by the form, as people do.
func (b Tab) SignIn(name string) {
	b.t.Helper()
	b.Go("/dashboard/sign-in")
	b.Fill("#email", name+"@example.com")
	b.Fill("#password", string(Password))
	b.Press("Sign in")
}

// Do runs steps of chromedp.
func (b Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Go opens a page of acme; a path that begins with a slash is one already.
func (b Tab) Go(path string) {
	b.t.Helper()
	if path[0] != '/' {
		path = "/dashboard/" + b.house.Acme + "/" + path
	}
	b.Do(chromedp.Navigate(b.house.URL + path))
}

// Look has pages shown in a theme, and so many pixels wide.
func (b Tab) Look(theme string, width int64) {
	b.t.Helper()
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		return err
	}), chromedp.EmulateViewport(width, 900))
}

// Fill types into a field, in the place of what is there.
func (b Tab) Fill(css, text string) {
	b.t.Helper()
	b.Run("document.querySelector(" + strconv.Quote(css) + ").value = ''")
	b.Do(chromedp.SendKeys(chromedp.CSS(css), text))
}

// Press clicks the button or the link of a text and, where that leads to another
// page, waits for it.
func (b Tab) Press(text string) {
	b.t.Helper()
	b.Run(`(() => {
		const found = [...document.querySelectorAll("button, a")].find((e) => e.textContent.trim() === ` + strconv.Quote(text) + ` && e.getClientRects().length);
		if (!found) throw new Error("there is nothing called " + ` + strconv.Quote(text) + ` + " in " + document.body.innerText);
		window.left = true;
		setTimeout(() => found.click());
	})()`)
	b.Until("!window.left && document.readyState === 'complete'")
}

// Until waits until an expression holds, in whatever page is there by then.
func (b Tab) Until(expression string) {
	b.t.Helper()
	for range 200 {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && holds {
			return
		}
		_, _ = chromedp.Run(b.ctx, chromedp.Evaluate[chromedp.Void]("new Promise((r) => setTimeout(r, 50))", await)) // the page may be left meanwhile
	}
	b.t.Fatalf("%s never holds; the page says %s", expression, b.Text())
}

// Run runs JavaScript, and waits for what it promises.
func (b Tab) Run(script string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[chromedp.Void](script, await)); err != nil {
		b.t.Fatalf("%.80s: %v", script, err)
	}
}

func await(e *runtime.EvaluateParams) { chromedp.EvalAwaitPromise(e) }

// Text is what the page says.
func (b Tab) Text() string {
	b.t.Helper()
	return Read[string](b, "document.body.innerText")
}

// Picture is the page whole, as PNG.
func (b Tab) Picture() []byte {
	b.t.Helper()
	var shot []byte
	whole := true
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		got, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &whole})
		if err == nil {
			shot = got.Data
		}
		return err
	}))
	return shot
}

// Faults are what went wrong in the page.
func (b Tab) Faults() []string {
	b.t.Helper()
	return Read[[]string](b, "window.faults ?? ['the page was not watched']")
}

// Read is the value of an expression in the page.
func Read[T any](b Tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, await))
	if err != nil {
		b.t.Fatalf("%.80s: %v", expression, err)
	}
	return v
}
