// Package demo is the demonstration: a book shop's agent, a callee with a
// script, and a show of their call as it happens, seen over HTTP alone.
package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/sip/siptest"
)

// Secret signs the demo's webhooks. It guards nothing: its receiver is this
// process.
const Secret = "whsec_ZGVtby1vZi1wYXJsZXktbm90LWEtc2VjcmV0LWF0LWFsbA==" //nolint:gosec // see above

// File is what an operator would write down for the demo.
//
// It takes the receiver's address, the secret and the carrier's address.
const File = `
organizations:
- name: demo
  timezone: America/New_York
  webhooks: [{url: "http://%s/hook", secret: %q, events: [call_ended, call_analyzed]}]
  agents:
  - name: demo
    published: true
    greeting: "Hello, this is Parley. How can I help?"
    prompt: "You answer the phone of a small book shop. Be brief and kind."
    voicemail: hangup
    recording: true
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}
  trunks:
  - name: demo
    proxy: "sip:%s;transport=udp"
    caller_numbers: ["+12025550100"]
    subgroups:
    - {name: default, allowed_destinations: ["1"], agents: [demo], concurrent_calls: 10, calls_per_minute: 30}
`

// Hello is what the callee says first.
const Hello = "hello"

// Lines are what the callee says then, one after the other.
func Lines() []string {
	return []string{"hello when do you open tomorrow", "do you have the odyssey", "great thank you goodbye"}
}

// Script makes the fake model keep a book shop.
func Script() fake.Script {
	s := fake.Typical()
	s.Reply = func(m []fake.Message) string {
		said := ""
		if len(m) > 0 {
			said = m[len(m)-1].Content
		}
		for _, r := range []struct{ word, answer string }{
			{"goodbye", "Thank you for calling. Goodbye!"},
			{"open", "We open at 9 tomorrow, and we close at 6."},
			{"odyssey", "Yes, 2 copies are here. Shall I keep one for you?"},
			{"hello", "Hello! What can I do for you?"},
		} {
			if strings.Contains(said, r.word) {
				return r.answer
			}
		}
		return "You said: " + said
	}
	s.Call = func(m []fake.Message) (string, string) {
		if len(m) == 0 || !strings.Contains(m[0].Content, "report_call") {
			return "", ""
		}
		return "report_call", `{"summary":"The callee asked when the shop opens and whether it has the odyssey.","success":true,"sentiment":"positive","in_voicemail":false,"opt_out":false}`
	}
	return s
}

// Carrier takes every call after a short ring.
func Carrier() *siptest.Carrier {
	return &siptest.Carrier{
		Listen: "127.0.0.1:0",
		Answer: func(siptest.Invite) siptest.Script {
			return siptest.Script{
				Ring: 100 * time.Millisecond, After: 600 * time.Millisecond, Status: http.StatusOK,
				Talk: siptest.Person{Hello: Hello, Lines: Lines()}.Talk,
			}
		},
	}
}

// A hook is a webhook that was received.
type hook struct {
	kind, id string
	verified bool
}

// A Receiver takes the demo's webhooks and checks their signatures, as a
// client would (standardwebhooks.com).
type Receiver struct {
	http   *http.Server
	listen net.Listener
	hooks  chan hook
	over   chan struct{}
}

// StartReceiver listens on loopback.
func StartReceiver(ctx context.Context) (*Receiver, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Receiver{listen: l, hooks: make(chan hook, 16), over: make(chan struct{})}
	r.http = &http.Server{Handler: http.HandlerFunc(r.take), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(r.over)
		_ = r.http.Serve(l) // ErrServerClosed
	}()
	return r, nil
}

// Addr is where it listens: host and port.
func (r *Receiver) Addr() string { return r.listen.Addr().String() }

func (r *Receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 4<<20))
	if err != nil {
		return
	}
	var told struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(body, &told) != nil {
		told.Type = "what is no notice"
	}
	h := hook{kind: told.Type, id: req.Header.Get("Webhook-Id"), verified: SignedBy(Secret, req.Header, body)}
	select {
	case r.hooks <- h:
	default: // nobody looks any more
	}
	w.WriteHeader(http.StatusNoContent)
}

// SignedBy checks a Standard Webhooks 1.0.0 signature.
func SignedBy(secret string, h http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for got := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return true
		}
	}
	return false
}

// Close stops it.
func (r *Receiver) Close() {
	_ = r.http.Close()
	<-r.over
}

// Number is nobody's (NANP 555-0100 to 555-0199 are for fiction).
const Number = "+12025550199"

// Operator is who signs in to the demo's dashboard.
const Operator = "demo@parley.example"

// ErrUnfinished says that the demo did not come to its end.
var ErrUnfinished = errors.New("the demo's call did not come to its end")
