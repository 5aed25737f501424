// Package jsclient serves the JavaScript module with which web pages join calls, and its type declarations. `npm pack`
// builds a package from this folder.
package jsclient

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"time"
)

//go:embed parley.js parley.d.ts
var files embed.FS

// Handler serves GET /rtc/parley.js and GET /rtc/parley.d.ts. Pages of any origin may load them, because the files
// contain no secrets.
func Handler() http.Handler {
	mux := http.NewServeMux()
	for name, kind := range map[string]string{"parley.js": "text/javascript; charset=utf-8", "parley.d.ts": "text/plain; charset=utf-8"} {
		body, err := files.ReadFile(name)
		if err != nil {
			continue // impossible, because the file is embedded
		}
		sum := sha256.Sum256(body)
		tag := `"` + hex.EncodeToString(sum[:16]) + `"` // RFC 9110 section 8.8.3
		mux.HandleFunc("GET /rtc/"+name, func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", "*")
			h.Set("Cross-Origin-Resource-Policy", "cross-origin")
			h.Set("Content-Type", kind)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Cache-Control", "no-cache") // browsers check each time whether the file has changed
			h.Set("Etag", tag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
		})
	}
	return mux
}
