package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
)

// explore opens the API explorer in several widths and both themes: no fault occurs, nothing is wider than the window,
// and axe finds nothing serious. It changes the language of samples and sends requests.
func explore(t *testing.T, c chrome) {
	t.Helper()
	p := c.open(t, c.server.publicURL+"/docs#create-campaign", nil)
	p.until("the operation", "document.querySelector('#create-campaign').open && !document.querySelector('#access').hidden")
	for _, width := range []int64{390, 1440} {
		p.view("light", width)
		p.run("scrollTo(0, 0)")
		p.until("the menu", "document.querySelector('.menu nav').checkVisibility() === (innerWidth > 900)")
		p.picture("explorer-top-" + strconv.FormatInt(width, 10))
	}
	p.run("for (const d of document.querySelectorAll('.operation')) d.open = true")
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{390, 1440, 2560} {
			where := theme + " " + strconv.FormatInt(width, 10)
			p.view(theme, width)
			if wide := eval[int64](p, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s: the page is %d pixels wide", where, wide)
			}
			p.picture("explorer-" + strings.ReplaceAll(where, " ", "-"))
		}
	}
	p.run("for (const d of document.querySelectorAll('.operation')) d.open = ['create-campaign', 'import-report', 'schema-Campaign'].includes(d.id)")
	for theme, width := range map[string]int64{"light": 390, "dark": 1440} {
		p.view(theme, width)
		dashtest.CheckAccessibility(p.ctx, t, "explorer, "+theme+" "+strconv.FormatInt(width, 10))
	}
	visible := "[...document.querySelectorAll('#create-phone-call figure')].filter((f) => f.getClientRects().length).map((f) => f.dataset.language)"
	for _, language := range []string{"TypeScript", "Python", "Go", "curl"} {
		p.run("document.querySelector('#list-calls button[data-language=" + language + "]').click()")
		if got := eval[[]string](p, visible); !slices.Equal(got, []string{language}) {
			t.Errorf("%s shows %q", language, got)
		}
	}
	send := func(id string, wants ...string) {
		t.Helper()
		p.run("document.querySelector('#" + id + " .try button').click()")
		p.until("the response", "document.querySelector('#"+id+" output pre')?.textContent")
		got := eval[string](p, "(() => { const o = document.querySelector('#"+id+" output'); return o.textContent + o.firstChild.className; })()")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", id, got, want)
			}
		}
	}
	send("list-calls", "Refused: 401", "api_key_required", "bad")
	p.run("document.querySelector('#key').value = " + strconv.Quote(c.api.Key))
	send("list-calls", "Success: 200", `"has_more": false`, "good")
	p.run("document.querySelector('#create-web-call textarea').value = '{\"agent_id\": \"demo\"}'")
	send("create-web-call", `"call_type": "web"`)
	send("create-phone-call", `"call_type": "phone"`)
	if errs := eval[[]string](p, "probe.errors ?? []"); len(errs) > 0 {
		t.Errorf("%q", errs)
	}
}

// view sets theme and width of a tab.
func (p tab) view(theme string, width int64) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		return err
	}), chromedp.EmulateViewport(width, 900))
}

// picture writes the window to the folder PARLEYTEST_PICTURES, if it is set.
func (p tab) picture(name string) {
	dir := os.Getenv("PARLEYTEST_PICTURES")
	if dir == "" {
		return
	}
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		got, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+".png"), got.Data, 0o600)
	}))
}
