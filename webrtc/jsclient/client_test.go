package jsclient

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
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

func TestPackage(t *testing.T) {
	var p struct {
		Name, Version, Type, Main, Types string
		Exports                          map[string]map[string]string
		Files                            []string
		Dependencies, Scripts            map[string]string
	}
	if err := json.Unmarshal([]byte(text(t, "package.json")), &p); err != nil {
		t.Fatal(err)
	}
	named := []string{p.Main, p.Types, p.Exports["."]["types"], p.Exports["."]["default"]}
	for _, f := range p.Files {
		text(t, f)
	}
	for _, n := range named {
		if !slices.Contains(p.Files, strings.TrimPrefix(n, "./")) {
			t.Errorf("the package refers to %q, which is not in files: %v", n, p.Files)
		}
	}
	if p.Type != "module" || len(p.Dependencies)+len(p.Scripts) > 0 {
		t.Errorf("%+v", p)
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
