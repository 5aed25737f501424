package docs

import (
	"bytes"
	"compress/gzip"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func source(pages map[string]string) fstest.MapFS {
	var picture bytes.Buffer
	_ = png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))) // a buffer takes all
	files := fstest.MapFS{
		home:                   {Data: []byte("# Start\n\n## Learn\n\n- [First](first.md): one\n- [Calls](../calls.md)\n\nText.\n")},
		"docs/guide/first.md":  {Data: []byte("# The first\n\nSee [ends](../calls.md#how-it-ends), [below](#below), ![picture](../img/a.png) and https://example.com.\n\n## Below\n\nneedle\n")},
		"docs/calls.md":        {Data: []byte("# Calls & more\n\n## How it `ends`\n\n| a | b |\n|---|---|\n| cell | `code` |\n\n    parley serve\n\n## How it ends\n\n[changes](../CHANGELOG.md) [first](guide/first.md)\n")},
		"docs/img/a.png":       {Data: picture.Bytes()},
		"docs/example.yaml":    {Data: []byte("organizations: []\n")},
		"docs/adr/README.md":   {Data: []byte("# Decisions\n\n[one](0001-one.md)\n")},
		"docs/adr/0001-one.md": {Data: []byte("# One\n")},
		"CHANGELOG.md":         {Data: []byte("# Changes\n")},
	}
	for name, text := range pages {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func get(t *testing.T, d *Docs, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if err := d.Serve(w, r); err != nil {
		return nil
	}
	return w
}

func content(t *testing.T, r *httptest.ResponseRecorder) string {
	t.Helper()
	if r == nil {
		t.Fatal("path not found")
	}
	return r.Body.String()
}

func TestServe(t *testing.T) {
	d := New(source(nil))
	for path, want := range map[string][]string{
		"/docs/guide": {
			`<title>Start · Parley</title>`, `<h2>Learn</h2>`, `<a href="/docs/guide/first">First</a>`, `aria-controls="results"`,
			`<a rel="next" href="/docs/guide/first">`,
		},
		"/docs/guide/first": {
			`<a href="/docs/guide/reference/calls#how-it-ends">ends</a>`, `<a href="#below">below</a>`, `src="/docs/guide/img/a.png"`, `width="30" height="20"`,
			`<a href="https://example.com">`, `<h2 id="below">`, `aria-current="page"`, `<li><a href="#below">Below</a></li>`,
		},
		"/docs/guide/reference/calls": {
			`<title>Calls &amp; more · Parley</title>`, `<h2 id="how-it-ends">`, `<h2 id="how-it-ends-1">`, `<td>cell</td>`, `href="/docs/changelog"`,
			`href="/docs/guide/first"`,
		},
		"/docs/guide/adr":             {`href="/docs/guide/adr/0001-one"`},
		"/docs/changelog":             {"<h1", "Changes"},
		"/docs/guide/example.yaml":    {"organizations"},
		"/docs/guide/assets/index.js": {`{"p":"The first","h":"Below","a":"guide/first#below","t":"needle"}`, `cell code parley serve`},
		"/docs/guide/assets/docs.js":  {"use strict"},
	} {
		body := content(t, get(t, d, path))
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s does not contain %s:\n%s", path, w, body)
			}
		}
	}
	for _, path := range []string{"/docs/guide/", "/docs/guide/absent", "/docs/guide/reference", "/docs/guide/first.md", "/docs/guide/../calls"} {
		if get(t, d, path) != nil {
			t.Errorf("%s is served", path)
		}
	}
}

func TestHeaders(t *testing.T) {
	d := New(source(nil))
	plain, zipped := get(t, d, "/docs/guide"), get(t, d, "/docs/guide", "Accept-Encoding", "gzip, br")
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-cache", "Vary": "Accept-Encoding", "Content-Security-Policy": policy,
	} {
		if got := plain.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if inflated, _ := io.ReadAll(z); string(inflated) != content(t, plain) || plain.Header().Get("Etag") == zipped.Header().Get("Etag") {
		t.Errorf("the compressed page differs, or has the ETag %s of the other", plain.Header().Get("Etag"))
	}
	for _, c := range []struct {
		path, tag string
		want      int
	}{
		{"/docs/guide", plain.Header().Get("Etag"), http.StatusNotModified},
		{"/docs/guide", `"other"`, http.StatusOK},
		{"/docs/guide/img/a.png", "", http.StatusOK},
	} {
		if r := get(t, d, c.path, "If-None-Match", c.tag); r == nil || r.Code != c.want {
			t.Errorf("%s with %s: %v, want %d", c.path, c.tag, r, c.want)
		}
	}
	if kind := get(t, d, "/docs/guide/img/a.png", "Accept-Encoding", "gzip").Header(); kind.Get("Content-Type") != "image/png" || kind.Get("Content-Encoding") != "" {
		t.Errorf("a picture has the headers %v", kind)
	}
}

// TestHostileText checks that a page cannot inject markup, also not through titles and links.
func TestHostileText(t *testing.T) {
	d := New(source(map[string]string{
		"docs/guide/first.md": "# <script>a()</script>\n\n<img src=x onerror=b()>\n\n<div>\n<script>c()</script>\n</div>\n\n[x](javascript:d()) <javascript:e()>\n\n## \"onclick=f()\n\n`<b>`\n\n```\n</pre><script>g()</script>\n```\n",
	}))
	page := content(t, get(t, d, "/docs/guide/first"))
	for _, not := range []string{"<script>", "<img src=x", `href="javascript:`, "<b>", `id=""`} {
		if strings.Contains(page, not) {
			t.Errorf("the page contains %s:\n%s", not, page)
		}
	}
	if index := content(t, get(t, d, "/docs/guide/assets/index.js")); strings.Contains(index, "<script>") {
		t.Errorf("the index contains a script: %s", index)
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		pages map[string]string
		want  []string
	}{
		"sound":          {nil, nil},
		"missing page":   {map[string]string{"docs/calls.md": "# A\n[x](absent.md) [y](guide/first.md#absent) [z](#no)\n"}, []string{"absent.md", "first.md#absent", "#no"}},
		"rooted link":    {map[string]string{"docs/calls.md": "# A\n[x](/docs/guide) [y](ftp://a/b)\n"}, []string{"/docs/guide", "ftp://a/b"}},
		"missing image":  {map[string]string{"docs/calls.md": "# A\n![x](img/b.png)\n"}, []string{"img/b.png"}},
		"not an image":   {map[string]string{"docs/calls.md": "# A\n![x](example.yaml)\n"}, []string{"shows docs/example.yaml"}},
		"unlisted page":  {map[string]string{"docs/new.md": "# New\n"}, []string{"does not list docs/new.md"}},
		"outside of all": {map[string]string{"docs/calls.md": "# A\n[x](../../etc/passwd)\n"}, []string{"etc/passwd"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := source(c.pages)
			files[home].Data = append(files[home].Data, "\n- [D](../adr/README.md)\n- [C](../../CHANGELOG.md)\n"...)
			faults, err := New(files).Check()
			if name == "sound" && (err != nil || len(faults) > 0) {
				t.Fatalf("%v, %v", faults, err)
			}
			for _, w := range c.want {
				if err != nil || !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, w) }) {
					t.Errorf("%v, %v: nothing about %s", faults, err, w)
				}
			}
		})
	}
	for name, text := range map[string]string{"docs/calls.md": "no heading\n", home: ""} {
		if _, err := New(source(map[string]string{name: text})).Check(); err == nil {
			t.Errorf("%s with %q is accepted", name, text)
		}
	}
}

// TestOrder checks that the decisions follow their list, by number, before the next page of the navigation.
func TestOrder(t *testing.T) {
	d := New(source(map[string]string{
		home:                   "# Start\n\n## Contribute\n\n- [Decisions](../adr/README.md)\n- [Changes](../../CHANGELOG.md)\n",
		"docs/adr/0002-two.md": "# Two\n",
	}))
	at, order := "guide", []string{}
	for at != "" {
		order = append(order, at)
		_, next, _ := strings.Cut(content(t, get(t, d, "/docs/"+at)), `<a rel="next" href="/docs/`)
		at, _, _ = strings.Cut(next, `"`)
	}
	want := []string{"guide", "guide/adr", "guide/adr/0001-one", "guide/adr/0002-two", "changelog"}
	if !slices.Equal(order[:min(len(order), len(want))], want) {
		t.Errorf("the pages follow each other as %q, want %q first", order, want)
	}
}

// TestBuild checks that every link of the static pages leads to a file.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	n, err := New(source(nil)).Build(dir, "<v9>")
	if err != nil || n != 6 {
		t.Fatalf("%d pages, %v", n, err)
	}
	if b, unread := os.ReadFile(filepath.Join(dir, "index.html")); unread != nil || !strings.Contains(string(b), "Version &lt;v9&gt;") {
		t.Errorf("%v: %s", unread, b)
	}
	links := 0
	err = filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".html" {
			return err
		}
		b, err := os.ReadFile(name)
		for part := range strings.SplitSeq(strings.ReplaceAll(string(b), ` src="`, ` href="`), ` href="`) {
			to, _, _ := strings.Cut(part, `"`)
			to, _, _ = strings.Cut(to, "#")
			if strings.HasPrefix(part, "<!doctype") || to == "" || strings.HasPrefix(to, "https:") {
				continue
			}
			links++
			if _, missing := os.Stat(filepath.Join(filepath.Dir(name), to)); missing != nil || strings.HasPrefix(to, "/") {
				t.Errorf("%s links to %s", name, to)
			}
		}
		return err
	})
	if err != nil || links < 50 {
		t.Errorf("%d links, %v", links, err)
	}
	if _, err := New(source(nil)).Build(filepath.Join(dir, "index.html"), ""); err == nil {
		t.Error("a file is accepted as a folder")
	}
}
