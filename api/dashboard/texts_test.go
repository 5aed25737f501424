package dashboard_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/api/dashboard/ui"
)

// readEnglish returns the English texts by key: a text, or its plural forms.
func readEnglish(t *testing.T) map[string]any {
	t.Helper()
	files, err := filepath.Glob("ui/texts/en/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	all := map[string]any{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file map[string]map[string]any
		if err = yaml.Unmarshal(raw, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		prefix := strings.TrimSuffix(filepath.Base(name), ".yaml") + "."
		for key, text := range file["en"] {
			if !strings.HasPrefix(key, prefix) {
				t.Errorf("%s: the key %s does not begin with %s", name, key, prefix)
			}
			all[key] = text
		}
	}
	return all
}

// textOf returns a text with all its forms.
func textOf(v any) string {
	if forms, ok := v.(map[string]any); ok {
		all := ""
		for _, form := range slices.Sorted(maps.Keys(forms)) {
			all += fmt.Sprint(forms[form], " ")
		}
		return all
	}
	return fmt.Sprint(v)
}

// pageFiles returns the files of all pages.
func pageFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*/pages/*.html", "*/pages/*/*.html"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 30 {
		t.Fatalf("found %v", all)
	}
	return all
}

// walkGo parses the Go files of the dashboard that are not tests.
func walkGo(t *testing.T, visit func(name string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "dashtest" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			return err
		}
		visit(name, fset, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func literal(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// method returns the name of the method or function that is called.
func method(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

var (
	keyPrefix   = regexp.MustCompile(`^[a-z]+\.[a-z_.]+$`)
	placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)
	variable    = regexp.MustCompile(`(^|[^{])\{\{[a-z_]+\}\}($|[^}])`)                                     // of a prompt, not a placeholder
	pageCall    = regexp.MustCompile(`\b(t|plural|label) "([^"]+)"((?: "[a-z_]+" (?:\([^)]*\)|[^ )}]+))*)`) // t "KEY" "NAME" VALUE
	valueName   = regexp.MustCompile(` "([a-z_]+)" `)
)

// TestTexts checks that each text has a use and each use a text with the same placeholders. A key in Go code or a page is a
// use; a prefix of keys, to which code adds a code of a state or reason, is a use of all of them. TestPseudoTranslation finds
// placeholders of keys that code computes.
func TestTexts(t *testing.T) {
	english := readEnglish(t)
	used, prefixes := map[string]bool{}, []string{}
	use := func(where, key string, exact bool) {
		_, ok := english[key]
		used[key] = true
		if !exact {
			prefixes = append(prefixes, strings.TrimSuffix(key, ".")+".")
			ok = ok || slices.ContainsFunc(slices.Collect(maps.Keys(english)), func(k string) bool { return strings.HasPrefix(k, prefixes[len(prefixes)-1]) })
		}
		if !ok {
			t.Errorf("%s: no text has the key %s", where, key)
		}
	}
	walkGo(t, func(_ string, fset *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			text, isText := literal(n)
			if isText && english[text] != nil {
				used[text] = true
			}
			if isText && keyPrefix.MatchString(text) { // such as "campaigns.check." + code, or counts("campaigns.issue", …)
				prefixes = append(prefixes, strings.TrimSuffix(text, ".")+".")
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || method(call) != "T" && method(call) != "Label" {
				return true
			}
			where := fset.Position(call.Pos()).String()
			key, fixed := literal(call.Args[0])
			switch {
			case !fixed:
			case method(call) == "Label":
				use(where, key, false)
			default:
				use(where, key, true)
				checkPlaceholders(t, where, textOf(english[key]), placeholderNames(call.Args[1:]))
			}
			return true
		})
	})
	for _, file := range pageFiles(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pageCall.FindAllStringSubmatch(string(raw), -1) {
			use(file, m[2], m[1] != "label")
			switch m[1] {
			case "plural":
				checkPlaceholders(t, file, textOf(english[m[2]]), []string{"count"})
			case "t":
				var given []string
				for _, n := range valueName.FindAllStringSubmatch(m[3], -1) {
					given = append(given, n[1])
				}
				checkPlaceholders(t, file, textOf(english[m[2]]), given)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(english)) {
		if !used[key] && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			t.Errorf("the text %s has no use", key)
		}
	}
}

// placeholderNames returns the names of the arguments of T after the key, of which every second is a value.
func placeholderNames(args []ast.Expr) (names []string) {
	for i := 0; i < len(args); i += 2 {
		name, _ := literal(args[i])
		names = append(names, name)
	}
	if len(args)%2 > 0 {
		names = append(names, "a name without a value")
	}
	return names
}

// checkPlaceholders compares the names of values with the placeholders of a text. Forms need not contain the count.
func checkPlaceholders(t *testing.T, where, text string, given []string) {
	t.Helper()
	var wanted []string
	for _, m := range placeholder.FindAllStringSubmatch(variable.ReplaceAllString(text, "$1$2"), -1) {
		wanted = append(wanted, m[1])
	}
	missing := func(from []string) func(string) bool { return func(n string) bool { return !slices.Contains(from, n) } }
	if slices.ContainsFunc(wanted, missing(given)) || slices.ContainsFunc(given, missing(append(wanted, "count"))) {
		t.Errorf("%s: values %v for the text %q", where, given, text)
	}
}

// notMoved lists the files whose texts still stand in Go code.
var notMoved = []string{
	"settings/components.go", // made-up data of the page of components
	"agents/sample.go",       // sentences that voices say, in the language of an agent
	"ui/dates.go",            // formats of times, which follow the market
}

// notShown lists what looks like a sentence and is a class of style.css, part of the audit log, a code of an export or an error.
var notShown = []string{
	"number nowrap", "headers of tools", "values of headers", "complete hours", "complete hours before", "weekday and hour", "not taken",
	"the form is incomplete",
}

// TestNoSentenceInGo finds sentences in Go code that people may see. Errors, logs, SQL and headers are not.
func TestNoSentenceInGo(t *testing.T) {
	sentence := regexp.MustCompile(`^[“]?[A-Z]?[a-z’]+[,:;]? (?:[A-Za-z0-9%’“”-]+[,:;.]? )*[A-Za-z0-9%’“”-]+[.:…]?$`)
	quiet := []string{
		"Errorf", "New", "WarnContext", "ErrorContext", "InfoContext", "Exec", "Query", "QueryRow", "MustCompile", "Set", "Add", "Error", "T", "Label",
		"Fprintf", "WriteString", "HandleFunc",
	}
	found := 0
	walkGo(t, func(name string, fset *token.FileSet, f *ast.File) {
		skipped := slices.ContainsFunc(notMoved, func(p string) bool { return strings.HasPrefix(filepath.ToSlash(name), p) })
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && slices.Contains(quiet, method(call)) {
				return false
			}
			if _, ok := n.(*ast.Field); ok {
				return false // tags
			}
			if text, ok := literal(n); ok && sentence.MatchString(text) {
				if found++; !skipped && !slices.Contains(notShown, text) {
					t.Errorf("%s: %q: move it to ui/texts/en", fset.Position(n.Pos()), text)
				}
			}
			return true
		})
	})
	if found == 0 {
		t.Error("no sentence was found: the test is ineffective")
	}
}

// untranslated lists pages of notMoved, and those with texts of carrier profiles and of reports that the API makes.
var untranslated = []string{"settings/components", "carriers", "trunks/new", "imports/"}

// shownCodes are end reasons that the filter of calls names by their codes, which the API has.
var shownCodes = []string{"caller number unavailable", "provider not configured", "unknown after restart"}

// pseudo returns a translation that puts each text in brackets.
func pseudo(t *testing.T) *ui.Texts {
	t.Helper()
	bracket := func(text string) string { return "⟦" + text + "⟧" }
	texts, pages := map[string]any{}, map[string]string{}
	for key, v := range readEnglish(t) {
		if forms, ok := v.(map[string]any); ok {
			all := map[string]string{}
			for form, text := range forms {
				all[form] = bracket(fmt.Sprint(text))
			}
			texts[key] = all
			continue
		}
		texts[key] = bracket(fmt.Sprint(v))
	}
	for _, name := range pageFiles(t) {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		ui.TranslatePage(string(raw), func(english string) string {
			pages[english] = bracket(english)
			return english
		})
	}
	folder := fstest.MapFS{}
	for name, content := range map[string]any{"all.yaml": map[string]any{"qps": texts}, "pages.yaml": map[string]any{"qps": pages}} {
		raw, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		folder[name] = &fstest.MapFile{Data: raw}
	}
	if to := os.Getenv("PARLEYTEST_PAGES_YAML"); to != "" { // the texts of pages for a translator
		if err := os.WriteFile(to, folder["pages.yaml"].Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	translation, err := ui.ReadTexts(folder)
	if err != nil {
		t.Fatal(err)
	}
	return translation
}

var (
	innerBrackets = regexp.MustCompile(`⟦[^⟦⟧]*⟧`)
	shownValue    = regexp.MustCompile(` (?:aria-label|title|placeholder|alt|data-label)="([^"]*)"`)
	markup        = regexp.MustCompile(`(?s)<(?:script|style|pre|code|textarea).*?</(?:script|style|pre|code|textarea)>|<[^>]*>`)
	english       = regexp.MustCompile(`[A-Za-z’]+(?: [A-Za-z’]+){2,}`)
)

// TestPseudoTranslation shows all pages in a translation that puts each text in brackets, and finds three English words outside
// of them, and placeholders without a value. Scripts are not translated.
func TestPseudoTranslation(t *testing.T) {
	h := dashtest.New(t, func(h *dashtest.Env) { h.Dashboard.Texts = pseudo(t) })
	all := routes(t, h, "sales")
	all = append(all, ui.Route{Path: "live?call=call_1", Show: func(*ui.Request) (ui.Page, error) { return ui.Page{}, nil }}) // the panel
	b, left := h.SignIn(t, "ada"), map[string]string{}
	visited := 0
	for _, r := range all {
		if r.Show == nil || r.Root || slices.ContainsFunc(untranslated, func(p string) bool { return strings.HasPrefix(r.Path, p) }) {
			continue
		}
		a := b.Get(r.Path)
		if a.Status != http.StatusOK {
			continue
		}
		visited++
		text := a.Body
		for _, m := range shownValue.FindAllStringSubmatch(a.Body, -1) {
			text += "\n" + m[1]
		}
		text = html.UnescapeString(markup.ReplaceAllString(text, "\n"))
		for _, m := range placeholder.FindAllString(variable.ReplaceAllString(text, "$1$2"), -1) {
			t.Errorf("%s: the placeholder %s has no value", r.Path, m)
		}
		for innerBrackets.MatchString(text) {
			text = innerBrackets.ReplaceAllString(text, "\n")
		}
		for _, m := range english.FindAllString(text, -1) {
			if !slices.Contains(shownCodes, m) {
				left[m] = r.Path
			}
		}
	}
	if visited < 40 {
		t.Errorf("%d pages visited", visited)
	}
	for _, text := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("%s: %q is not translated", left[text], text)
	}
}
