package dashtest

import (
	"context"
	"os/exec"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watch records faults of a page: errors, policy violations, and dialogs, which only an
// injected script would open.
const watch = `
window.faults = [];
addEventListener("error", (e) => faults.push("error: " + (e.message ?? e.target?.src ?? e.type)), true);
addEventListener("unhandledrejection", (e) => faults.push("rejection: " + e.reason));
document.addEventListener("securitypolicyviolation", (e) => faults.push("policy: " + e.violatedDirective + " " + e.blockedURI));
for (const f of ["alert", "confirm", "prompt", "print"]) window[f] = (v) => { faults.push(f + ": " + v); };
const log = console.error;
console.error = (...all) => { faults.push("console: " + all.join(" ")); log(...all); };
`

// A Tab is a tab of Chromium.
type Tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // context of the tab
	env *Env
}

// Chrome opens Chromium without a session, or skips the test if it is not installed.
func (h *Env) Chrome(t *testing.T) Tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed (apt-get install chromium)")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir())}
	for name, value := range map[string]any{
		"headless": "new", "disable-gpu": true, "disable-background-networking": true,
		"disable-component-update": true, "disable-sync": true, "disable-quic": true,
	} {
		options = append(options, chromedp.Flag(name, value))
	}
	allocator, quit := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(quit)
	ctx, leave := chromedp.NewContext(allocator)
	t.Cleanup(leave)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // waits for the profile to be written
	tab := Tab{t, ctx, h}
	tab.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		focused := emulation.SetFocusEmulationEnabledParams{Enabled: true} // or the page gets no focus events
		if _, err := cdp.Call(ctx, target, emulation.SetFocusEmulationEnabled, focused); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
		return err
	}))
	return tab
}

// SignIn signs in through the form.
func (b Tab) SignIn(name string) {
	b.t.Helper()
	b.Go("/dashboard/sign-in")
	b.Fill("#email", name+"@example.com")
	b.Fill("#password", string(Password))
	b.Press("Sign in")
}

// Do runs chromedp actions.
func (b Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Go opens a page of acme, or a path that begins with a slash.
func (b Tab) Go(path string) {
	b.t.Helper()
	if path[0] != '/' {
		path = "/dashboard/" + b.env.Acme + "/" + path
	}
	b.Do(chromedp.Navigate(b.env.URL + path))
}

// SetViewport sets theme and width in pixels.
func (b Tab) SetViewport(theme string, width int64) {
	b.t.Helper()
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		return err
	}), chromedp.EmulateViewport(width, 900))
}

// Fill replaces the content of a field.
func (b Tab) Fill(css, text string) {
	b.t.Helper()
	b.Run("document.querySelector(" + strconv.Quote(css) + ").value = ''")
	b.Do(chromedp.SendKeys(chromedp.CSS(css), text))
}

// Press clicks the button or link with this text and waits for a new page.
func (b Tab) Press(text string) {
	b.t.Helper()
	b.Run(`(() => {
		const find = () => [...document.querySelectorAll("button, a")].find((e) => e.textContent.trim() === ` + strconv.Quote(text) + ` && e.getClientRects().length);
		if (!find()) throw new Error("no button or link named " + ` + strconv.Quote(text) + ` + " in " + document.body.innerText);
		window.left = true;
		setTimeout(() => find().click()); // an update of the page may have replaced it
	})()`)
	b.Until("!window.left && document.readyState === 'complete'")
}

// Hold presses the mouse on an element, given as an expression, until release is called. The page has the element that is
// pressed as window.held: an update may have replaced or moved it since it was found, so Hold tries up to ten times.
func (b Tab) Hold(element string) (release func()) {
	b.t.Helper()
	b.Run(`addEventListener("pointerdown", (e) => { window.held = e.target; }, true)`)
	for range 10 {
		at := Read[[]float64](b, "(() => { const r = "+element+".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()")
		mouse := func(kind input.DispatchMouseEventType) {
			b.t.Helper()
			b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				_, err := cdp.Call(ctx, t, input.DispatchMouseEvent, input.DispatchMouseEventParams{
					Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1,
				})
				return err
			}))
		}
		mouse(input.DispatchMouseEventTypeMousePressed)
		if Read[bool](b, "held === "+element) {
			return func() { mouse(input.DispatchMouseEventTypeMouseReleased) }
		}
		mouse(input.DispatchMouseEventTypeMouseReleased)
	}
	b.t.Fatalf("%s cannot be pressed", element)
	return nil
}

// Until waits up to 10 s until an expression holds, across page changes.
func (b Tab) Until(expression string) {
	b.t.Helper()
	for range 200 {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && holds {
			return
		}
		// the page may change at any time
		_, _ = chromedp.Run(b.ctx, chromedp.Evaluate[chromedp.Void]("new Promise((r) => setTimeout(r, 50))", await))
	}
	b.t.Fatalf("timeout waiting for %s; page text: %s", expression, b.Text())
}

// Run runs JavaScript and awaits its promise.
func (b Tab) Run(script string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[chromedp.Void](script, await)); err != nil {
		b.t.Fatalf("%.80s: %v", script, err)
	}
}

func await(e *runtime.EvaluateParams) { chromedp.EvalAwaitPromise(e) }

// Text returns the text of the page.
func (b Tab) Text() string {
	b.t.Helper()
	return Read[string](b, "document.body.innerText")
}

// Picture returns a PNG of the whole page.
func (b Tab) Picture() []byte {
	b.t.Helper()
	var shot []byte
	whole := true
	b.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		got, err := cdp.Call(ctx, t, page.CaptureScreenshot,
			page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &whole})
		if err == nil {
			shot = got.Data
		}
		return err
	}))
	return shot
}

// Faults returns the recorded faults of the page.
func (b Tab) Faults() []string {
	b.t.Helper()
	return Read[[]string](b, "window.faults ?? ['faults were not recorded']")
}

// Read evaluates an expression in the page.
func Read[T any](b Tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, await))
	if err != nil {
		b.t.Fatalf("%.80s: %v", expression, err)
	}
	return v
}
