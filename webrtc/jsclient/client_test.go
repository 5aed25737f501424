package jsclient

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func get(t *testing.T, path, tag string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	for path, kind := range map[string]string{"/rtc/parley.js": "text/javascript; charset=utf-8", "/rtc/parley.d.ts": "text/plain; charset=utf-8"} {
		w := get(t, path, "")
		h := w.Header()
		if w.Code != 200 || h.Get("Content-Type") != kind || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		if again := get(t, path, h.Get("Etag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: conditional request: got %d", path, again.Code)
		}
		if other := get(t, path, `"other"`); other.Code != 200 || other.Body.Len() != w.Body.Len() {
			t.Errorf("%s: outdated ETag: got %d", path, other.Code)
		}
	}
	if w := get(t, "/rtc/client.go", ""); w.Code != 404 {
		t.Errorf("unknown file: got %d", w.Code)
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pack builds the package and returns its files.
func pack(t *testing.T) (archive string, packed map[string]string) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed (apt-get install npm)")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "npm", "pack", "--pack-destination", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%v %v", archives, err)
	}
	f, err := os.Open(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	packed = map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return archives[0], packed
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		packed[strings.TrimPrefix(h.Name, "package/")] = string(body)
	}
}

// TestPackage checks that the package contains what pages need and nothing else, and the files that the server serves.
func TestPackage(t *testing.T) {
	_, packed := pack(t)
	want := []string{"LICENSE", "README.md", "package.json", "parley.d.ts", "parley.js"}
	if got := slices.Sorted(maps.Keys(packed)); !slices.Equal(got, want) {
		t.Errorf("the package contains %q, want %q", got, want)
	}
	for _, name := range []string{"parley.js", "parley.d.ts"} {
		if served := get(t, "/rtc/"+name, "").Body.String(); served != packed[name] || served == "" {
			t.Errorf("the package and the server have different files %s", name)
		}
	}
	if packed["LICENSE"] != text(t, "../../LICENSE") {
		t.Error("LICENSE is not that of the project")
	}
	var p struct {
		Name, Version, Type, Main, Types, License string
		Exports                                   struct {
			Page struct{ Types, Default string } `json:"."`
		}
		Engines, Repository, Dependencies, Scripts map[string]string
	}
	if err := json.Unmarshal([]byte(packed["package.json"]), &p); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{p.Main, p.Types, p.Exports.Page.Types, p.Exports.Page.Default} {
		if packed[strings.TrimPrefix(name, "./")] == "" {
			t.Errorf("the package refers to %q, which it does not contain", name)
		}
	}
	if archive := "npm install ./parley-voice-web-" + p.Version + ".tgz"; !strings.Contains(packed["README.md"], archive) {
		t.Errorf("README.md lacks %q", archive)
	}
	if p.Type != "module" || p.License != "Apache-2.0" || p.Engines["node"] == "" || p.Repository["directory"] != "webrtc/jsclient" ||
		len(p.Dependencies)+len(p.Scripts) > 0 {
		t.Errorf("%+v", p)
	}
}

// TestTypeScript compiles a program that uses the package, and the example of README.md, with the strict rules of
// TypeScript. Node.js must be able to import the module, as servers that render pages do.
func TestTypeScript(t *testing.T) {
	archive, _ := pack(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/typescript")); err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(text(t, "README.md"), "```ts\n")
	if example, _, _ = strings.Cut(example, "```"); !ok {
		t.Fatal("README.md has no example")
	}
	if n := strings.Count(example, "\n"); n > 10 {
		t.Errorf("the example has %d lines, want at most 10", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "readme.ts"), []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ([]byte, error) {
		c := exec.CommandContext(t.Context(), args[0], args[1:]...)
		c.Dir = dir
		return c.CombinedOutput()
	}
	if out, err := run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		if os.Getenv("PARLEYTEST_SOAK") == "" {
			t.Skipf("the registry of npm is not available; make soak requires it: %v\n%s", err, out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"npm", "install", "--offline", "--no-save", "--no-audit", "--no-fund", archive},
		{"node_modules/.bin/tsc"},
		{"node", "--input-type=module", "--eval", `import { Parley } from "@parley-voice/web"; process.exit(Parley.resumable() ? 1 : 0)`},
	} {
		if out, err := run(args...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

// names returns the first group of all matches of a pattern between two texts, sorted.
func names(t *testing.T, source, from, to, pattern string) []string {
	t.Helper()
	_, part, ok := strings.Cut(source, from)
	if part, _, _ = strings.Cut(part, to); !ok {
		t.Fatalf("%q is missing", from)
	}
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(part, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestDocumented compares the events, options, codes and members of parley.js with its types, docs/web-calls.md and
// README.md.
func TestDocumented(t *testing.T) {
	const row, member = "(?m)^\\| `(\\w+)` \\|", `(?m)^  (\w+)\??:`
	js, types, page, readme := text(t, "parley.js"), text(t, "parley.d.ts"), text(t, "../../docs/web-calls.md"), text(t, "README.md")
	codes := names(t, types, "export type ErrorCode =", ";", `"(\w+)"`)
	options := names(t, types, "export interface Options {", "\n}", member)
	events := names(t, types, "export interface Events {", "\n}", member)
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"events of parley.js", names(t, js, "class Call", "\n}\n", `#emit\("(\w+)"`), events},
		{"events of docs/web-calls.md", names(t, page, "\n| event | data |", "\n\n", row), events},
		{"events of README.md", names(t, readme, "\n| event | data |", "\n\n", row), events},
		{"options of docs/web-calls.md", names(t, page, "\n| option | effect |", "\n\n", row), options},
		{"options of README.md", names(t, readme, "\n| option | effect |", "\n\n", row), options},
		{"codes of README.md", names(t, readme, "\n| code | reason |", "\n\n", row), codes},
	} {
		if !slices.Equal(c.got, c.want) || len(c.got) < 7 {
			t.Errorf("%s: %q, parley.d.ts declares %q", c.what, c.got, c.want)
		}
	}
	for _, code := range codes {
		if !strings.Contains(page, "`"+code+"`") {
			t.Errorf("docs/web-calls.md does not name the code %s", code)
		}
	}
	_, call, _ := strings.Cut(types, "export class Call ")
	for _, m := range regexp.MustCompile(`(?m)^  (?:readonly )?([a-z]\w*)[(<:]`).FindAllStringSubmatch(call, -1) {
		if m[1] != "resumable" && !regexp.MustCompile("[`.]"+m[1]+"[`(]").MatchString(page) {
			t.Errorf("docs/web-calls.md does not name %s", m[1])
		}
	}
}

// TestTypes checks that parley.d.ts declares every public method and error code, and that every error of the client has
// a message.
func TestTypes(t *testing.T) {
	js, types := text(t, "parley.js"), text(t, "parley.d.ts")
	for _, m := range regexp.MustCompile(`(?m)^  (?:async |get )?([a-z]\w*)\(.*\) \{$`).FindAllStringSubmatch(js, -1) {
		if name := m[1]; name != "constructor" && !regexp.MustCompile(`\b`+name+`[(<:]`).MatchString(types) {
			t.Errorf("parley.d.ts does not declare %s", name)
		}
	}
	coded := regexp.MustCompile(`new ParleyError\("(\w+)"`).FindAllStringSubmatch(js, -1)
	if len(coded) < 8 {
		t.Fatalf("found %d errors, want at least 8", len(coded))
	}
	for _, m := range coded {
		if !strings.Contains(js, "\n  "+m[1]+": \"") {
			t.Errorf("%s has no message", m[1])
		}
	}
	_, messages, _ := strings.Cut(js, "const MESSAGES = {")
	messages, _, _ = strings.Cut(messages, "};")
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): "`).FindAllStringSubmatch(messages, -1) {
		if !strings.Contains(types, `"`+m[1]+`"`) {
			t.Errorf("parley.d.ts does not know the code %s", m[1])
		}
	}
	for _, word := range []string{"http://", "https://", "eval(", "innerHTML"} {
		if strings.Contains(js, word) {
			t.Errorf("parley.js contains %s", word)
		}
	}
}
