package dashtest

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"io"
	"testing"

	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe/axe.min.js.gz
var axe []byte

// seriousFaults evaluates to what axe finds serious or critical on a page.
const seriousFaults = `axe.run(document, {resultTypes: ["violations", "passes"]}).then((r) =>
	r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
	.concat(r.passes.length ? [] : [{id: "axe checked nothing", nodes: []}])
	.map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + n.failureSummary.replace(/\s+/g, " ")).join(" | ")))`

// CheckAccessibility fails the test if axe finds a serious violation on the page of the tab ctx. where names the page.
func CheckAccessibility(ctx context.Context, t testing.TB, where string) {
	t.Helper()
	loaded, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!window.axe"))
	if err == nil && !loaded {
		_, err = chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void](axeScript(t)))
	}
	if err != nil {
		t.Fatalf("%s: axe: %v", where, err)
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](seriousFaults, await))
	if err != nil {
		t.Fatalf("%s: axe: %v", where, err)
	}
	for _, f := range found {
		t.Errorf("%s: %s", where, f)
	}
}

func axeScript(t testing.TB) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(axe))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// CheckAccessibility fails the test if axe finds a serious violation on the page. where names the page.
func (b Tab) CheckAccessibility(where string) {
	b.t.Helper()
	CheckAccessibility(b.ctx, b.t, where)
}
