//go:build ignore

// Package main serves the page of a web call, and creates calls. The API key stays on this server.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

// A server answers requests of the page.
type server struct {
	parley, key, agent string
	client             http.Client
}

func main() {
	s := &server{
		parley: cmp.Or(os.Getenv("PARLEY_API_URL"), "http://127.0.0.1:8080"),
		key:    os.Getenv("PARLEY_API_KEY"),
		agent:  cmp.Or(os.Getenv("AGENT"), "demo"),
		client: http.Client{Timeout: 10 * time.Second},
	}
	mux := http.NewServeMux()
	for path, name := range map[string]string{"/{$}": "index.html", "/app.js": "app.js", "/style.css": "style.css"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			policy := "default-src 'self'; connect-src 'self' " + strings.Replace(s.parley, "http", "ws", 1) + "; frame-ancestors 'none'"
			w.Header().Set("Content-Security-Policy", policy)
			http.ServeFile(w, r, name)
		})
	}
	mux.HandleFunc("GET /parley.js", func(w http.ResponseWriter, r *http.Request) { // or the file of the npm package
		s.forward(w, r, http.MethodGet, "/rtc/parley.js", nil)
	})
	mux.HandleFunc("POST /call", s.createCall)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "3000"), mux))
}

// createCall creates a call and returns what the page needs to join.
func (s *server) createCall(w http.ResponseWriter, r *http.Request) {
	// Limit here who may call, and how often: each call costs money.
	if r.Header.Get("Sec-Fetch-Site") != "same-origin" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	order, err := json.Marshal(map[string]any{
		"agent_id": s.agent, "max_duration_s": 300, "metadata": map[string]string{"source": "website"},
	})
	if err != nil {
		log.Print(err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	s.forward(w, r, http.MethodPost, "/v1/calls/web", order)
}

// forward sends a request to Parley and returns the response to the page.
func (s *server) forward(w http.ResponseWriter, r *http.Request, method, path string, body []byte) {
	request, err := http.NewRequestWithContext(r.Context(), method, s.parley+path, bytes.NewReader(body))
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+s.key)
		request.Header.Set("Content-Type", "application/json")
		var response *http.Response
		if response, err = s.client.Do(request); err == nil {
			defer response.Body.Close()
			w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
			w.WriteHeader(response.StatusCode)
			_, err = io.Copy(w, response.Body)
		}
	}
	if err != nil {
		log.Print(err)
		w.WriteHeader(http.StatusBadGateway) // no effect if the response has begun
	}
}
