package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
)

//go:embed assets pages/*.html
var files embed.FS

const assetPath = Home + "/assets/"

type asset struct {
	kind         string
	body, packed []byte
}

// assets are files whose names contain the hash of their content, so that a browser keeps them
// until they change.
type assets struct {
	by    map[string]asset
	names map[string]string // file names by the name without the hash
}

func readAssets() (assets, error) {
	a := assets{by: map[string]asset{}, names: map[string]string{}}
	entries, err := files.ReadDir("assets")
	if err != nil {
		return a, fmt.Errorf("dashboard: %w", err)
	}
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, e := range entries {
		body, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			return a, fmt.Errorf("dashboard: %w", err)
		}
		ext := path.Ext(e.Name())
		sum := sha256.Sum256(body)
		name := strings.TrimSuffix(e.Name(), ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err = z.Write(body); err == nil {
			err = z.Close()
		}
		if err != nil {
			return a, fmt.Errorf("dashboard: %w", err)
		}
		a.by[name], a.names[e.Name()] = asset{kinds[ext], body, packed.Bytes()}, name
	}
	return a, nil
}

// path is the address of a file, by its name without the hash.
func (a assets) path(name string) string { return assetPath + a.names[name] }

func (a assets) serve(w http.ResponseWriter, r *http.Request, name string) {
	file, ok := a.by[name]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	tag := `"` + name + `"`
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Etag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := file.body
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = file.packed
	}
	_, _ = w.Write(body) // the client may have left
}
