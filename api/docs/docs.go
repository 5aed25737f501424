// Package docs renders the documentation from Markdown and serves it under /docs, with
// navigation and a search that works offline. It also writes the same pages as static files.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/api/response"
)

// Docs is the documentation. Pages are rendered at the first request.
type Docs struct {
	source fs.FS
	render func() (map[string]file, error)
}

// New returns the documentation in the Markdown files of source. They have the paths of the
// repository.
func New(source fs.FS) *Docs {
	return &Docs{source, sync.OnceValues(func() (map[string]file, error) {
		s, err := load(source, false)
		if err != nil {
			return nil, err
		}
		return s.files()
	})}
}

// A file is one response, or one file of the static pages.
type file struct {
	kind          string // Content-Type
	body, zipped  []byte
	tag, zippedAs string // ETags of body and zipped
}

// newFile compresses text. Images are compressed already. Programs of examples are shown, not run.
func newFile(name string, body []byte) (file, error) {
	kinds := map[string]string{
		".html": "text/html; charset=utf-8", "": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
		".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
	}
	kind, known := kinds[path.Ext(name)]
	if !known || strings.HasPrefix(name, "guide/examples/") {
		kind = "text/plain; charset=utf-8"
	}
	sum := sha256.Sum256(body)
	tag := hex.EncodeToString(sum[:8])
	f := file{kind: kind, body: body, tag: `"` + tag + `"`, zippedAs: `"` + tag + `-gzip"`}
	if kind == "image/png" {
		return f, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		return f, err
	}
	if err := z.Close(); err != nil {
		return f, err
	}
	f.zipped = b.Bytes()
	return f, nil
}

// policy allows only files of this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Serve answers GET for paths below /docs.
func (d *Docs) Serve(w http.ResponseWriter, r *http.Request) error {
	files, err := d.render()
	if err != nil {
		return err
	}
	f, ok := files[strings.TrimPrefix(r.URL.Path, "/docs/")]
	if !ok {
		return &response.PlainError{Status: http.StatusNotFound, Message: "path not found"}
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	body := f.body
	if f.zipped != nil {
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			h.Set("ETag", f.zippedAs)
			body = f.zipped
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return nil
}

// Build writes the pages as static files into a folder and returns their number. The first page
// is index.html. Links are relative, so that the files work at any address and from a disk. Each
// page shows the version.
func (d *Docs) Build(dir, version string) (int, error) {
	s, err := load(d.source, true)
	if err != nil {
		return 0, err
	}
	s.version = version
	files, err := s.files()
	if err != nil {
		return 0, err
	}
	for name, f := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a web server of another user reads it
			return 0, fmt.Errorf("docs: %w", err)
		}
		if err := os.WriteFile(to, f.body, 0o644); err != nil { //nolint:gosec // a web server of another user reads it
			return 0, fmt.Errorf("docs: %w", err)
		}
	}
	return len(s.pages), nil
}

// Check returns the links that lead nowhere, and the pages of the guide and the reference that
// the navigation does not list.
func (d *Docs) Check() ([]string, error) {
	s, err := load(d.source, true)
	if err != nil {
		return nil, err
	}
	faults := s.dead
	listed := map[*page]bool{}
	for _, g := range s.groups {
		for _, i := range g.Items {
			listed[i.page] = true
		}
	}
	for _, p := range s.pages {
		if !listed[p] && p != s.home && path.Dir(p.source) != decisions {
			faults = append(faults, home+" does not list "+p.source)
		}
	}
	slices.Sort(faults)
	return faults, nil
}
