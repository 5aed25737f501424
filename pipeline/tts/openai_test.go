package tts

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

// TestOpenAIRequest checks the address, the headers and the parameters of a request.
func TestOpenAIRequest(t *testing.T) {
	var path string
	var header http.Header
	var got map[string]any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, header = r.URL.String(), r.Header
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(make([]byte, 480))
	}))
	defer srv.Close()
	o := OpenAI{
		URL: srv.URL + "/openai/v1/?api-version=2026-01-01", Header: http.Header{"api-key": {"secret"}}, Model: "kokoro", Voice: "af_heart",
	}
	style := pipeline.Style{Rate: 8000, Options: pipeline.Options{
		Speed: 1.5, Instructions: "Speak calmly.", Extra: map[string]any{"lang_code": "a", "model": "other"},
	}}
	sp, err := o.Open(t.Context(), style)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sp.Write("Good morning."), sp.Flush()); err != nil {
		t.Fatal(err)
	}
	for _, err := range sp.Audio() {
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = sp.Close()
	want := map[string]any{
		"model": "kokoro", "voice": "af_heart", "input": "Good morning.", "response_format": "pcm",
		"speed": 1.5, "instructions": "Speak calmly.", "lang_code": "a",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	if path != "/openai/v1/audio/speech?api-version=2026-01-01" || header.Get("Api-Key") != "secret" || header.Get("Authorization") != "" {
		t.Errorf("requested %s with %v", path, header)
	}
}

// TestOpenAIEventErrors checks the HTTP statuses of errors within the events.
func TestOpenAIEventErrors(t *testing.T) {
	for event, status := range map[string]int{
		`{"type":"error","error":{"message":"no","code":"model_not_found"}}`:               400,
		`{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`: 429,
		`{"error":{"message":"no such voice","type":"BadRequestError","code":400}}`:        400,
		`{"type":"error","error":{"message":"no","type":"server_error"}}`:                  0,
		`{"error":"no"}`: 0,
	} {
		_, err := io.ReadAll(newAudioEvents(strings.NewReader("data: "+event+"\n\n"), new(http.Request)))
		var refused *pipeline.RefusedError
		if errors.As(err, &refused); err == nil || (refused != nil) != (status != 0) || refused != nil && refused.Status != status ||
			!strings.Contains(err.Error(), "no") && !strings.Contains(err.Error(), "slow down") {
			t.Errorf("%s: %v, want %d", event, err, status)
		}
	}
	if _, err := (OpenAI{URL: "http://bad host/"}).Open(t.Context(), pipeline.Style{Rate: 8000}); err == nil {
		t.Error("a malformed URL is accepted")
	}
}

// TestOpenAISecrets checks that no error shows a key, neither after a failed connection nor
// when a provider repeats the key in an event.
func TestOpenAISecrets(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"error","error":{"message":"key-canary and query-canary are wrong"}}`+"\n\n")
	}))
	defer srv.Close()
	for address, want := range map[string]string{
		srv.URL + "?api-key=query-canary":         "[redacted] and [redacted] are wrong",
		"http://127.0.0.1:0?api-key=query-canary": "connect",
		"http://bad host?api-key=query-canary":    "malformed",
	} {
		_, _, err := speak(t.Context(), OpenAI{URL: address, Key: "key-canary"}, 8000, "Good morning.")
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
