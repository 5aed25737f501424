package ui

import (
	"strings"
	"testing"
	"testing/fstest"
)

// readTranslation reads a translation of two files.
func readTranslation(texts, pages string) (*Texts, error) {
	return ReadTexts(fstest.MapFS{"ui.yaml": {Data: []byte(texts)}, "pages.yaml": {Data: []byte(pages)}})
}

// TestPluralForms checks that the language decides which numbers have the same form.
func TestPluralForms(t *testing.T) {
	english, err := ReadTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	const pages = "pl: {Calls: Połączenia}"
	polish, err := readTranslation("pl: {ui.count.days: {one: '{count} dzień', few: '{count} dni (few)', many: '{count} dni', other: '{count} dnia'}}", pages)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int][2]string{
		0: {"0 days", "0 dni"}, 1: {"1 day", "1 dzień"}, 3: {"3 days", "3 dni (few)"}, 5: {"5 days", "5 dni"}, 1200: {"1,200 days", "1,200 dni"},
	} {
		for i, w := range []*Texts{english, polish} {
			if got := w.T("ui.count.days", "count", n); got != want[i] {
				t.Errorf("%d: %q, want %q", n, got, want[i])
			}
		}
	}
	if got := polish.T("ui.menu.calls"); got != "Calls" {
		t.Errorf("a text that the translation lacks: %q", got)
	}
	if got := english.Label("ui.end_reason", "reason_of_a_newer_server"); got != "reason of a newer server" {
		t.Errorf("an unknown code: %q", got)
	}
}

// TestMarks checks that a sentence ends with the mark of the language, and with one mark only.
func TestMarks(t *testing.T) {
	chinese, err := readTranslation("zh: {ui.sentence: '{text}。'}", "zh: {}")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"": "", "线路忙": "线路忙。", "线路忙。": "线路忙。", "line busy!": "line busy!", "Line busy?": "Line busy?", "busy…": "busy…", "busy": "busy。", "उपलब्ध।": "उपलब्ध।",
	} {
		if got := chinese.Complete(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := chinese.Sentence("busy."); got != "Busy." {
		t.Error(got)
	}
}

// TestValuesAreKept checks that a value is not read as a placeholder, and that digits of a text are not formatted.
func TestValuesAreKept(t *testing.T) {
	w, err := ReadTexts(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.T("ui.field.pairs.duplicate", "line", 1234, "name", "{line} 5678"); got != "Line 1,234: duplicate name {line} 5678." {
		t.Error(got)
	}
}

// TestTranslationIsChecked checks which files are refused.
func TestTranslationIsChecked(t *testing.T) {
	for name, c := range map[string]struct{ texts, want string }{
		"an unknown key":      {"de: {ui.nothing: Nichts}", "ui.nothing: expected a text that English has"},
		"another placeholder": {"de: {ui.span.hours: '{stunden} Std.'}", "with the placeholders [{hours}]"},
		"no form other":       {"de: {ui.count.days: {one: '{count} Tag'}}", "expected the form other"},
		"a wrong form":        {"de: {ui.count.days: {other: '{count} Tage', several: '{count} Tage'}}", "expected the form other"},
		"two languages":       {"de: {ui.menu.calls: Anrufe}\nfr: {}", "expected one language"},
		"a wrong language":    {"deutsch_: {ui.menu.calls: Anrufe}", "ui.yaml: language"},
		"the same key twice":  {"de: {ui.menu.calls: Anrufe, ui.menu.calls: Gespräche}", "already defined"},
		"no mapping":          {"de", "ui.yaml"},
	} {
		if _, err := readTranslation(c.texts, "de: {}"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for pages, want := range map[string]string{
		"de: {Calls: '{{Anrufe}}'}":             "no {{",
		"de: {'Wait {For}': Warten}":            "expected the placeholders [{For}]",
		"de: {'Wait {For}': 'Warten {Fuer}'}":   "expected the placeholders [{For}]",
		"de: {Calls: '{N} Anrufe'}":             "expected the placeholders []",
		"de: {'{N} of {All}': 'Von {All} {N}'}": "",
	} {
		if _, err := readTranslation("de: {}", pages); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", pages, err, want)
		}
	}
	if _, err := ReadTexts(fstest.MapFS{}); err == nil {
		t.Error("an empty folder is accepted")
	}
}

// TestTranslatePage checks what counts as a text of a page.
func TestTranslatePage(t *testing.T) {
	for source, want := range map[string]string{
		`<h1>Calls</h1>`:                      `<h1>⟦Calls⟧</h1>`,
		"<p>\n  Two\n  words\n</p>":           "<p>\n  ⟦Two words⟧\n</p>",
		`<p>{{.Text}}</p><p>12 – {{.N}}</p>`:  `<p>{{.Text}}</p><p>12 – {{.N}}</p>`,
		`{{if .On}}On{{else}}Off{{end}} time`: `{{if .On}}⟦On⟧{{else}}⟦Off⟧{{end}} ⟦time⟧`,
		`<p>{{count .Size.Characters}} characters, {{count .Other.Characters}} tokens</p>`:    `<p>⟦{{count .Size.Characters}} characters, {{count .Other.Characters}} tokens⟧</p>`,
		`<a title="Open {{.Name}}" href="/{{if gt .N 1}}x{{end}}" class="two words">Open</a>`: `<a title="⟦Open {{.Name}}⟧" href="/{{if gt .N 1}}x{{end}}" class="two words">⟦Open⟧</a>`,
		`<button aria-label="{{printf "%d of 5" .}}">★</button>`:                              `<button aria-label="{{printf "%d of 5" .}}">★</button>`,
		`<p>AT&amp;T’s trunk</p>`: `<p>⟦AT&amp;T’s trunk⟧</p>`,
	} {
		if got := TranslatePage(source, func(english string) string { return "⟦" + english + "⟧" }); got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
	if got := TranslatePage("<p>Wait {{.For}}</p>", func(string) string { return "{For} <b>warten" }); got != "<p>{{.For}} &lt;b&gt;warten</p>" {
		t.Errorf("a translation with a tag: %s", got)
	}
}
