package dashboard_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
)

// hostile is a name that runs as a script unless it is escaped.
const hostile = `"><img src=x onerror="alert(1)"><script>alert(2)</script>'-alert(3)-'`

// TestPages opens every page in Chromium with hostile names: no script runs, no fault
// occurs, no page is wider than a phone, and axe finds nothing serious.
func TestPages(t *testing.T) {
	h := dashtest.New(t)
	b := h.Chrome(t)
	var paths []string
	for _, r := range routes(t, h, hostile) {
		if r.Show != nil && !r.Root && !strings.HasSuffix(r.Path, "/lend") {
			paths = append(paths, r.Path)
		}
	}
	h.FurnishFigures(t, 200)
	b.Go("/dashboard/sign-in")
	b.CheckAccessibility("sign-in")
	b.SignIn("ada")
	b.Go("keys/new") // adds an entry to the audit log
	b.Fill("[name=name]", hostile)
	b.Press("Create key")
	upload(b, "campaigns/new", "rows", rows)
	b.Press("Continue")
	b.CheckAccessibility("campaigns/columns")
	if text := b.Text(); !strings.Contains(text, "No column maps to phone.") || !dashtest.Read[bool](b, "document.querySelector('button[formaction]').disabled") {
		t.Errorf("a list without a phone column can be continued: %s", text)
	}
	b.Go("nothing")
	if text := b.Text(); !strings.Contains(text, "Page not found") || !dashtest.Read[bool](b, "!!document.querySelector('.side nav')") {
		t.Errorf("the page of an unknown path says %s", text)
	}
	seen := map[string]bool{} // kinds of elements that axe has checked
	for i, path := range paths {
		theme := []string{"light", "light", "dark"}[i%3] // the dark theme gets fewer checks
		b.SetViewport(theme, 1280)
		b.Go(path)
		if faults := b.Faults(); len(faults) > 0 {
			t.Errorf("%s: %q", path, faults)
		}
		fresh := false
		for _, kind := range dashtest.Read[[]string](b, `[...new Set([...document.querySelectorAll("body *")].map((e) => [e.parentElement.tagName, e.tagName, e.className.baseVal ?? e.className, e.type ?? ""].join(" ")))]`) {
			kind += theme
			fresh, seen[kind] = fresh || !seen[kind], true
		}
		if fresh {
			b.CheckAccessibility(path)
		}
		b.SetViewport("light", 390)
		if wide := dashtest.Read[int](b, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s is %d pixels wide on a phone", path, wide)
		}
	}
}

// TestAppearance checks what screenshots showed: a page has one primary button, notices cover nothing, the
// columns of links are visible, and the cells of a card begin at its edge.
func TestAppearance(t *testing.T) {
	h := dashtest.New(t)
	b := h.Chrome(t)
	b.SetViewport("light", 1280)
	b.SignIn("ada")
	for _, path := range []string{"overview", "live", "campaigns", "calls", "agents", "trunks", "do-not-call", "do-not-call/numbers", "keys", "webhooks", "market", "operators"} {
		b.Go(path)
		if n := dashtest.Read[int](b, `[...document.querySelectorAll("main .button.first")].filter((e) => e.checkVisibility({ contentVisibilityAuto: true })).length`); n > 1 {
			t.Errorf("%s of an empty organization has %d primary buttons", path, n)
		}
	}
	h.FurnishMany(t)
	b.Go("overview")
	if gap := dashtest.Read[float64](b, `document.querySelector(".bar-row").getBoundingClientRect().top - document.querySelector(".note").getBoundingClientRect().bottom`); gap < 8 {
		t.Errorf("the notice of Overview is %g pixels above the periods", gap)
	}
	for _, path := range []string{"campaigns", "agents", "trunks", "do-not-call", "keys", "webhooks", "operators", "audit"} {
		b.Go(path)
		if hidden := dashtest.Read[int](b, `Math.max(...[...document.querySelectorAll(".table")].map((e) => e.scrollWidth - e.clientWidth))`); hidden > 0 {
			t.Errorf("%s hides %d pixels of a table", path, hidden)
		}
	}
	b.SetViewport("light", 390)
	for _, path := range []string{"live", "do-not-call", "webhooks", "trunks"} {
		b.Go(path)
		if indented := dashtest.Read[[]string](b, `[...document.querySelectorAll(".stack td")].filter((e) => parseFloat(getComputedStyle(e).paddingLeft) > 0).map((e) => e.dataset.label)`); len(indented) > 0 {
			t.Errorf("cells of cards of %s are indented: %q", path, indented)
		}
	}
}

// TestKeyInBrowser creates and revokes a key; the API follows at once.
func TestKeyInBrowser(t *testing.T) {
	h := dashtest.New(t)
	b := h.Chrome(t)
	b.SignIn("ada")
	b.Go("keys")
	b.Press("Create key")
	b.Fill("[name=name]", "CRM")
	b.Press("Create key")
	secret := dashtest.Read[string](b, "document.getElementById('secret').value")
	keys := &apikeys.Keys{Pool: h.DB.Pool}
	key, err := keys.Authenticate(t.Context(), "Bearer "+secret)
	if err != nil || key.Name != "CRM" {
		t.Fatalf("%+v, %v", key, err)
	}
	b.Press("Go to keys")
	b.Press("Revoke CRM")
	b.Press("Revoke key")
	if text := b.Text(); !strings.Contains(text, "Key revoked.") {
		t.Errorf("the page says %s", text)
	}
	if _, err = keys.Authenticate(t.Context(), "Bearer "+secret); control.CodeOf(err) != control.CodeKeyRevoked {
		t.Errorf("after the revocation: %v", err)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestAgentInBrowser creates, publishes, changes and publishes an agent again.
func TestAgentInBrowser(t *testing.T) {
	h := dashtest.New(t)
	b := h.Chrome(t)
	b.SignIn("oscar")
	b.Go("agents/new")
	b.Fill("[name=name]", "sales")
	b.Fill("[name=prompt]", "Sell.")
	for _, part := range []string{"asr", "llm", "tts"} {
		b.Fill("[name='speech."+part+".provider']", "fake")
	}
	b.Press("Create draft")
	b.Press("Publish draft")
	b.Press("Edit as YAML")
	b.Run("document.querySelector('textarea').value += 'greeting: Hello {{first name}}.\\n'")
	b.Press("Save draft")
	if text := b.Text(); !strings.Contains(text, "is not a valid placeholder") {
		t.Errorf("an invalid placeholder is accepted: %s", text)
	}
	if id := dashtest.Read[string](b, "document.activeElement.id"); id != "f-text" {
		t.Errorf("the focus is on %q", id)
	}
	b.Run("document.querySelector('textarea').value = document.querySelector('textarea').value.replace('first name', 'first_name')")
	b.Press("Save draft")
	b.Press("Publish draft")
	if text := b.Text(); !strings.Contains(text, "Version 2 published") || !strings.Contains(text, "Each call must set first_name.") {
		t.Errorf("the page says %s", text)
	}
	if published := h.Count(t, "SELECT published_version FROM agents WHERE name = 'sales'"); published != 2 {
		t.Errorf("version %d is published", published)
	}
}

// TestOverviewInBrowser reads values of a chart by keyboard, and opens the calls behind one.
func TestOverviewInBrowser(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 1000)
	b := h.Chrome(t)
	b.SignIn("vera")
	if path := dashtest.Read[string](b, "location.pathname"); !strings.HasSuffix(path, "/overview") {
		t.Fatalf("the start page is %s", path)
	}
	for _, theme := range []string{"light", "dark"} {
		b.SetViewport(theme, 1440)
		b.Go("overview?period=month")
		b.CheckAccessibility("overview, " + theme)
	}
	for _, width := range []int64{390, 2560} {
		b.SetViewport("light", width)
		if wide := dashtest.Read[int64](b, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("the page is %d pixels wide at %d", wide, width)
		}
	}
	if used := dashtest.Read[int](b, "document.querySelector('.tiles').getBoundingClientRect().width"); used < 2100 {
		t.Errorf("%d of 2560 pixels are used", used)
	}
	for chart, keys := range map[string][]string{".stacks": {"ArrowLeft", "Home", "ArrowRight"}, ".heat": {"ArrowDown", "ArrowUp", "ArrowLeft"}} {
		b.Run(`(() => { const all = document.querySelectorAll("` + chart + ` a"); all[Math.floor(all.length / 2)].focus(); })()`)
		for _, key := range keys {
			b.Run(`window.was = document.activeElement; was.dispatchEvent(new KeyboardEvent("keydown", { key: "` + key + `", bubbles: true }))`)
			state := dashtest.Read[[]any](b, `[was !== document.activeElement, document.querySelectorAll("`+chart+` [tabindex='0']").length, document.activeElement.getAttribute("tabindex"),
				!document.querySelector(".tip").hidden && document.querySelector(".tip").textContent === document.activeElement.getAttribute("aria-label")]`)
			if state[0] != true || state[1] != 1.0 || state[2] != "0" || state[3] != true {
				t.Errorf("%s after %s: moved, tab stops, tab index, tip: %v", chart, key, state)
			}
		}
	}
	said := dashtest.Read[string](b, `document.querySelector(".tip").textContent`)
	b.Run(`window.left = true; setTimeout(() => document.activeElement.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })))`)
	b.Until("!window.left && document.readyState === 'complete'")
	rows := dashtest.Read[int](b, "document.querySelectorAll('tbody tr').length")
	if path := dashtest.Read[string](b, "location.pathname"); !strings.HasSuffix(path, "/calls") || rows == 0 || !strings.Contains(said, "\n"+strconv.Itoa(rows)+" call") {
		t.Errorf("%s lists %d calls, and the chart said %q", path, rows, said)
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
}

// TestTheme checks that the chosen theme is stored and applied before the first paint.
func TestTheme(t *testing.T) {
	h := dashtest.New(t)
	b := h.Chrome(t)
	b.SetViewport("light", 1280)
	b.SignIn("vera")
	ground := func() string { return dashtest.Read[string](b, "getComputedStyle(document.body).backgroundColor") }
	light := ground()
	b.Do(chromedp.Click(chromedp.CSS("[data-theme-toggle]")))
	b.Until("document.documentElement.dataset.theme === 'dark'")
	if ground() == light {
		t.Error("the toggle changes nothing")
	}
	b.Go("calls")
	if ground() == light {
		t.Error("the theme is not stored")
	}
	links := dashtest.Read[[]string](b, "[...document.querySelectorAll('.side nav a')].map((a) => a.textContent)")
	if slices.Contains(links, "Operators") || len(links) < 5 {
		t.Errorf("a viewer sees the links %s", strconv.Quote(strings.Join(links, ", ")))
	}
}

// TestCallJourney searches a word that was said, opens the call by keyboard, plays from the line, adds a tag, and filters by
// it.
func TestCallJourney(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	h.FurnishFigures(t, 300)
	h.Say(t, "call_1", "agent: Hello, this is the book shop.", "caller: Is the atlas there?", "agent: Yes, we have one left.", "caller: Keep it, please.")
	b := h.Chrome(t)
	key := func(name string) {
		t.Helper()
		b.Run(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "` + name + `", bubbles: true, cancelable: true }))`)
	}
	clean := func(where string) {
		t.Helper()
		b.CheckAccessibility(where)
		if faults := b.Faults(); len(faults) > 0 {
			t.Errorf("%s: %q", where, faults)
		}
	}
	b.SetViewport("light", 1440)
	b.SignIn("oscar")
	b.Go("calls")
	b.Fill("[name=q]", "atlas")
	b.Press("Search")
	if mark := dashtest.Read[string](b, "document.querySelector('mark').textContent"); mark != "atlas" {
		t.Errorf("%q is marked", mark)
	}
	clean("a search")
	key("j")
	if at := dashtest.Read[string](b, "document.activeElement.className"); at != "row" {
		t.Fatalf("after j the focus is on %q", at)
	}
	b.Run("window.left = true; setTimeout(() => document.activeElement.click())")
	b.Until("!window.left && document.readyState === 'complete' && location.hash === '#line-1'")
	b.Until("document.querySelector('svg.lanes.has-wave') && document.querySelector('audio').currentTime === 1")
	b.Run("document.querySelector('#line-1 button').click()")
	b.Until("!document.querySelector('audio').paused")
	key(" ")
	b.Until("document.querySelector('audio').paused")
	key("ArrowLeft")
	b.Until("document.querySelector('audio').currentTime === 0")
	clean("a call")
	b.Fill("#tag", "call back")
	b.Press("Add tag")
	b.Run("document.querySelectorAll('.star')[3].click()")
	b.Until("document.body.innerText.includes('4 of 5 by oscar')")
	b.Fill("#note", "Wants the atlas.")
	b.Press("Add note")
	if text := b.Text(); !strings.Contains(text, "Wants the atlas.") {
		t.Errorf("no note: %s", text)
	}
	clean("a call with marks")
	b.Press("call back")
	if path := dashtest.Read[string](b, "location.search + ' ' + document.querySelectorAll('a.row').length"); path != "?tag=call%20back 1" {
		t.Errorf("the tag leads to %q", path)
	}
	b.Go("calls?status=ended")
	b.Run(`document.querySelectorAll("a.row")[3].focus(); window.left = true; setTimeout(() => document.elementFromPoint(...(() => { const r = document.querySelectorAll("tbody tr")[3].getBoundingClientRect(); return [r.right - 20, r.top + 8]; })()).click())`)
	b.Until("!window.left && document.readyState === 'complete' && location.pathname.includes('/calls/call_')")
	first := dashtest.Read[string](b, "location.pathname")
	key("j")
	b.Until("location.pathname !== '" + first + "' && location.search === '?status=ended' && document.readyState === 'complete'")
	key("k")
	b.Until("location.pathname === '" + first + "' && document.readyState === 'complete'")
	for _, width := range []int64{390, 2560} {
		for _, theme := range []string{"light", "dark"} {
			b.SetViewport(theme, width)
			for _, path := range []string{"calls?q=atlas", "calls/call_1"} {
				b.Go(path)
				clean(path)
				if wide := dashtest.Read[int64](b, "document.documentElement.scrollWidth"); wide > width {
					t.Errorf("%s is %d pixels wide at %d", path, wide, width)
				}
			}
		}
	}
}
