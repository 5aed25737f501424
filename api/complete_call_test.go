package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/outbox"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/webhook"
)

const hookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

type receiver struct {
	t    *testing.T
	mu   sync.Mutex
	got  []map[string]any
	came chan struct{}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	wh, err := standardwebhooks.NewWebhook(hookSecret)
	if err == nil {
		err = wh.Verify(text, req.Header)
	}
	if err != nil {
		r.t.Errorf("signature: %v", err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		r.t.Error(err)
	}
	if v["event_id"] != req.Header.Get("Webhook-Id") {
		r.t.Errorf("event_id %v, webhook-id %s", v["event_id"], req.Header.Get("Webhook-Id"))
	}
	r.mu.Lock()
	r.got = append(r.got, v)
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
	r.came <- struct{}{}
}

// TestCompleteCall places a call with recording and webhook and reads it through HTTP.
func TestCompleteCall(t *testing.T) {
	h := newEnv(t)
	hook := &receiver{t: t, came: make(chan struct{}, 10)}
	far := httptest.NewServer(hook)
	t.Cleanup(far.Close)
	spec, err := apply.Parse(strings.NewReader("organizations:\n- name: acme\n  webhooks: [{url: \"" + far.URL + "/hook\", secret: \"" + hookSecret + "\", events: [call_ended]}]\n"))
	if err == nil {
		err = apply.Apply(t.Context(), h.db.Pool, spec, apply.Options{AllowInsecure: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	spool := &recording.Spool{Dir: t.TempDir(), Bucket: h.bucket, Calls: store.RecordingStore{Store: h.store}}
	if err := spool.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.startNode(&carrier{}, conversation(twoLines), spool)
	dispatcher := &outbox.Dispatcher{
		Outbox: &store.EventStore{Pool: h.db.Pool}, Home: "here", Poll: 20 * time.Millisecond,
		Steps: []control.Step{
			{Name: "recording", Handler: spool},
			{Name: "webhook", Handler: &webhook.Notifier{Type: webhook.CallEnded, Pool: h.db.Pool, Calls: h.store, View: callview.View{Link: h.api.Recordings.Link}}},
		},
	}
	sender := &webhook.Sender{Pool: h.db.Pool, Owner: "n", AllowInsecure: true, Poll: 20 * time.Millisecond}
	h.run(dispatcher.Run)
	h.run(sender.Run)

	a := h.do("POST", "/v1/calls/phone", body(`"metadata":{"order":12345678901234567890,"contact_id":"mine"}`))
	id := a.json(t)["call_id"].(string)
	select {
	case <-hook.came:
	case <-time.After(20 * time.Second):
		t.Fatal("no webhook")
	}
	c := h.await(id, "ended")
	if c["recording_status"] != "ready" || c["recording_url"] == nil {
		t.Fatalf("recording %v %v", c["recording_status"], c["recording_url"])
	}
	n := hook.got[0]
	call := n["call"].(map[string]any)
	if n["type"] != "call_ended" || n["call_id"] != id || n["organization_id"] != h.org || call["status"] != "ended" ||
		call["recording_status"] != "ready" || len(call["transcript"].([]any)) != 2 {
		t.Errorf("event %v", n)
	}
	if _, ours := n["metadata"].(map[string]any)["contact_id"]; ours {
		t.Error("the event has the client's contact_id")
	}
	if !strings.Contains(string(h.do("GET", "/v1/calls/"+id, "").body), `"order":12345678901234567890`) {
		t.Error("a large number in metadata lost digits")
	}
	h.checkRecording(c["recording_url"].(string))

	// If an event is processed again, as after a crash, no second webhook is sent.
	h.exec("UPDATE events SET followed = '{}', done_at = NULL, lease_until = NULL")
	second := h.place()
	select {
	case <-hook.came:
	case <-time.After(20 * time.Second):
		t.Fatal("no second webhook")
	}
	hook.mu.Lock()
	defer hook.mu.Unlock()
	if len(hook.got) != 2 || hook.got[1]["call_id"] != second {
		t.Errorf("%d webhooks", len(hook.got))
	}
	for _, secret := range []string{"canary-trunk-password", hookSecret, h.key} {
		if strings.Contains(h.logged(), secret) {
			t.Errorf("the log contains a secret: %.6s…", secret)
		}
	}
}

// run runs a goroutine until the test ends.
func (h *env) run(run func(ctx context.Context)) {
	over := make(chan struct{})
	ctx, cancel := context.WithCancel(h.t.Context())
	go func() { run(ctx); close(over) }()
	h.t.Cleanup(func() { cancel(); <-over })
}

// checkRecording reads a recording with valid and invalid links.
func (h *env) checkRecording(link string) {
	h.t.Helper()
	path := strings.TrimPrefix(link, h.web.URL)
	a := h.do("GET", path, "", "Authorization", "")
	if a.status != 200 || !strings.HasPrefix(string(a.body), "RIFF") || a.header.Get("Content-Type") != "audio/wav" {
		h.t.Errorf("recording: %d %.20q", a.status, a.body)
	}
	if a := h.do("GET", path, "", "Range", "bytes=0-3"); a.status != 206 || string(a.body) != "RIFF" {
		h.t.Errorf("range: %d %q", a.status, a.body)
	}
	for what, bad := range map[string]string{
		"other signature": path[:len(path)-1] + "0", "other expiry": strings.Replace(path, "exp=", "exp=9", 1), "no signature": strings.Split(path, "?")[0],
		"other file": "/recordings/secret.wav",
	} {
		if bad == path {
			bad = path[:len(path)-1] + "1"
		}
		if a := h.do("GET", bad, ""); a.status != 404 {
			h.t.Errorf("%s: %d", what, a.status)
		}
	}
	h.api.Recordings.Now = func() time.Time { return time.Now().Add(9 * 24 * time.Hour) }
	defer func() { h.api.Recordings.Now = nil }()
	if a := h.do("GET", path, ""); a.status != 403 {
		h.t.Errorf("after expiry: %d", a.status)
	}
}

func TestOpenAPIAndExplorer(t *testing.T) {
	h := newEnv(t)
	doc := h.do("GET", "/openapi.json", "", "Authorization", "").json(t)
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", doc["openapi"])
	}
	paths := doc["paths"].(map[string]any)
	for path, method := range map[string]string{
		"/v1/calls/phone": "post", "/v1/calls": "get", "/v1/calls/{id}": "get", "/v1/calls/{id}/turns": "get", "/v1/calls/{id}/end": "post",
	} {
		op, ok := paths[path].(map[string]any)[method].(map[string]any)
		if !ok {
			t.Errorf("%s %s is missing", method, path)
			continue
		}
		for status, r := range op["responses"].(map[string]any) {
			if status[0] != '2' {
				continue
			}
			media := r.(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
			schema := media["schema"].(map[string]any)
			if media["example"] == nil || schema["properties"] != nil || path != "/v1/calls/{id}/turns" && schema["type"] != "object" {
				t.Errorf("%s %s: success %v", path, status, schema)
			}
		}
	}
	phone := doc["components"].(map[string]any)["schemas"].(map[string]any)["PhoneCall"].(map[string]any)
	if req := phone["required"].([]any); len(req) != 2 {
		t.Errorf("required %v", req)
	}
	// The examples of the document are real responses.
	shown := paths["/v1/calls/phone"].(map[string]any)["post"].(map[string]any)["responses"].(map[string]any)["202"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["example"].(map[string]any)
	got := h.do("GET", "/v1/calls/"+h.place(), "").json(t)
	for k := range got {
		if _, ok := shown[k]; !ok {
			t.Errorf("the example has no %s", k)
		}
	}
	if len(shown) != len(got) {
		t.Errorf("the example has %d keys, the response %d", len(shown), len(got))
	}

	page := h.do("GET", "/docs", "", "Authorization", "")
	if page.status != 200 || strings.Contains(string(page.body), "<script>") || !strings.Contains(page.header.Get("Content-Security-Policy"), "script-src 'self';") {
		t.Errorf("the page: %d %v", page.status, page.header)
	}
	for _, f := range []string{"/docs/explorer.css", "/docs/explorer.js"} {
		plain := h.do("GET", f, "", "Accept-Encoding", "identity")
		if !strings.Contains(string(page.body), `="`+f+`"`) || plain.status != 200 || len(plain.body) == 0 || plain.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d", f, plain.status)
		}
	}
	if a := h.do("GET", "/docs/explorer.css", "", "Accept-Encoding", "gzip"); a.header.Get("Content-Encoding") != "gzip" {
		t.Error("the style sheet is not compressed")
	}
	if a := h.do("GET", "/docs/explorer.go", ""); a.status != 404 {
		t.Errorf("another file: %d", a.status)
	}
}

func TestHealth(t *testing.T) {
	h := newEnv(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := h.do("GET", path, "", "Authorization", ""); a.status != 200 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	h.api.Ready = func(context.Context) error { return io.ErrUnexpectedEOF }
	if a := h.do("GET", "/readyz", ""); a.status != 503 || a.code() != "service_unavailable_error" {
		t.Errorf("not ready: %d %s", a.status, a.body)
	}
	if a := h.do("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("alive but not ready: %d", a.status)
	}
}

func TestPanicIs500(t *testing.T) {
	h := newEnv(t)
	h.api.Ready = func(context.Context) error { panic("canary") } //nolint:forbidigo // tested behavior
	a := h.do("GET", "/readyz", "")
	if a.status != 500 || a.code() != "internal_error" || strings.Contains(string(a.body), "canary") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if !strings.Contains(h.logged(), "canary") {
		t.Error("the panic is not logged")
	}
}
