package openapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/parley-voice/parley/api/response"
)

//go:embed static
var static embed.FS

// explorerPolicy allows only files of this server and requests to it.
const explorerPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// An Explorer is a page with all operations and samples of them, which can also send requests.
type Explorer struct{ files map[string]explorerFile }

type explorerFile struct {
	kind         string
	body, zipped []byte
}

// NewExplorer renders the page from the extended document.
func NewExplorer(document []byte) (*Explorer, error) {
	m, err := Read(document)
	if err != nil {
		return nil, err
	}
	layout, err := template.ParseFS(static, "static/explorer.html")
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	var page bytes.Buffer
	if err = layout.Execute(&page, m.view()); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	e := &Explorer{map[string]explorerFile{}}
	if err = e.add("", "text/html; charset=utf-8", page.Bytes()); err != nil {
		return nil, err
	}
	for name, kind := range map[string]string{"explorer.js": "text/javascript; charset=utf-8", "explorer.css": "text/css; charset=utf-8"} {
		body, err := static.ReadFile("static/" + name)
		if err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
		if err = e.add(name, kind, body); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *Explorer) add(name, kind string, body []byte) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	e.files[name] = explorerFile{kind, body, b.Bytes()}
	return nil
}

// Serve answers GET /docs and GET /docs/{file}.
func (e *Explorer) Serve(w http.ResponseWriter, r *http.Request) error {
	f, ok := e.files[r.PathValue("file")]
	if !ok {
		return &response.PlainError{Status: http.StatusNotFound, Message: "path not found"}
	}
	h, body := w.Header(), f.body
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", explorerPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	_, _ = w.Write(body) // the client may have left
	return nil
}
