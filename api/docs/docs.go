// Package docs serves the interactive explorer of the API. All of it is
// embedded: it works without any network.
package docs

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/api/respond"
)

// static holds Swagger UI 5.35.0 as its makers built it, compressed, with its
// license, and a page of ours.
//
//go:embed static
var static embed.FS

// policy lets the page load its own files and talk to us, and nothing else. The
// explorer writes styles into its elements; scripts are ours alone.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A file is one of the explorer's.
type file struct{ kind, name string }

// files are what /docs/{file} leads to.
func files() map[string]file {
	const js, css, text = "text/javascript; charset=utf-8", "text/css; charset=utf-8", "text/plain; charset=utf-8"
	return map[string]file{
		"swagger-ui-bundle.js":             {js, "static/swagger-ui-bundle.js.gz"},
		"swagger-ui.css":                   {css, "static/swagger-ui.css.gz"},
		"explorer.js":                      {js, "static/explorer.js"},
		"explorer.css":                     {css, "static/explorer.css"},
		"LICENSE":                          {text, "static/LICENSE"},
		"NOTICE":                           {text, "static/NOTICE"},
		"swagger-ui-bundle.js.LICENSE.txt": {text, "static/swagger-ui-bundle.js.LICENSE.txt"},
	}
}

// Page answers GET /docs.
func Page(w http.ResponseWriter, r *http.Request) error {
	return serve(w, r, file{"text/html; charset=utf-8", "static/index.html"})
}

// File answers GET /docs/{file}.
func File(w http.ResponseWriter, r *http.Request) error {
	f, ok := files()[r.PathValue("file")]
	if !ok {
		return &respond.PlainError{Status: http.StatusNotFound, Message: "no such path"}
	}
	return serve(w, r, f)
}

func serve(w http.ResponseWriter, r *http.Request, f file) error {
	body, err := static.ReadFile(f.name)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	if strings.HasSuffix(f.name, ".gz") {
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
		} else if body, err = inflate(body); err != nil {
			return err
		}
	}
	_, _ = w.Write(body) // the client may be gone
	return nil
}

func inflate(body []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
