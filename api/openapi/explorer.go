package openapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/api/response"
)

// static holds Swagger UI 5.35.0 as released, compressed, with its license and our page.
//
//go:embed static
var static embed.FS

// explorerPolicy allows only files of this server and requests to it. The explorer sets inline
// styles.
const explorerPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type explorerFile struct{ kind, name string }

func explorerFiles() map[string]explorerFile {
	const js, css, text = "text/javascript; charset=utf-8", "text/css; charset=utf-8", "text/plain; charset=utf-8"
	return map[string]explorerFile{
		"swagger-ui-bundle.js":             {js, "static/swagger-ui-bundle.js.gz"},
		"swagger-ui.css":                   {css, "static/swagger-ui.css.gz"},
		"explorer.js":                      {js, "static/explorer.js"},
		"explorer.css":                     {css, "static/explorer.css"},
		"LICENSE":                          {text, "static/LICENSE"},
		"NOTICE":                           {text, "static/NOTICE"},
		"swagger-ui-bundle.js.LICENSE.txt": {text, "static/swagger-ui-bundle.js.LICENSE.txt"},
	}
}

// ExplorerPage answers GET /docs.
func ExplorerPage(w http.ResponseWriter, r *http.Request) error {
	return serve(w, r, explorerFile{"text/html; charset=utf-8", "static/index.html"})
}

// ExplorerFile answers GET /docs/{file}.
func ExplorerFile(w http.ResponseWriter, r *http.Request) error {
	f, ok := explorerFiles()[r.PathValue("file")]
	if !ok {
		return &response.PlainError{Status: http.StatusNotFound, Message: "path not found"}
	}
	return serve(w, r, f)
}

func serve(w http.ResponseWriter, r *http.Request, f explorerFile) error {
	body, err := static.ReadFile(f.name)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", explorerPolicy)
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
	_, _ = w.Write(body) // the client may have left
	return nil
}

func inflate(body []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
