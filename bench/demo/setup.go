// Package demo is the demonstration: the agent of a book shop calls a scripted callee, and the
// demo reads the call over HTTP and prints it.
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

	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/sip/siptest"
)

// Secret signs the demo's webhooks. It needs no protection, because the receiver is this process.
const Secret = "whsec_ZGVtby1vZi1wYXJsZXktbm90LWEtc2VjcmV0LWF0LWFsbA==" //nolint:gosec // see above

// Organization is the name of the organization that the demo furnishes.
const Organization = "Harbor Books"

// File is the operator's file of a small organization "demo", as a format string. Its arguments are the address of the
// receiver, the secret and the address of the carrier. FurnishedFile is that of Organization.
const (
	File          = "organizations:\n- name: demo\n" + body
	FurnishedFile = "organizations:\n- name: " + Organization + "\n  market: us\n" +
		"  disclosures: {agent: Anna, organization: " + Organization + "}\n" + body
)

const body = `
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
    - {name: default, allowed_destinations: [US], agents: [demo], concurrent_calls: 10, calls_per_minute: 30}
`

// Hello is the callee's first line.
const Hello = "hello"

// Lines returns the further lines of the callee.
func Lines() []string {
	return []string{"hello when do you open tomorrow", "do you have the odyssey", "great thank you goodbye"}
}

// Script lets the fake model answer as a book shop.
func Script() fakeprovider.Script {
	s := fakeprovider.Typical()
	s.Reply = func(m []fakeprovider.Message) string {
		if answer, ok := answerVisitor(m); ok {
			return answer
		}
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
	s.Call = func(m []fakeprovider.Message) (string, string) {
		if len(m) == 0 || !strings.Contains(m[0].Content, "report_call") {
			return "", ""
		}
		summary, success := "The callee asked when the shop opens and whether it has the odyssey.", true
		if strings.Contains(m[len(m)-1].Content, survey) {
			success = strings.Contains(m[len(m)-1].Content, "paper")
			if summary = "The person had no time for the survey."; success {
				summary = "The person answered both questions of the survey."
			}
		}
		return "report_call", fmt.Sprintf(`{"summary":%q,"success":%v,"sentiment":"positive","in_voicemail":false,"opt_out":false}`, summary, success)
	}
	return s
}

const busyHere = 486 // RFC 3261 21.4.24

// Carrier answers calls after a short ring. The people of the running campaign behave by the last digit of their number.
func Carrier() *siptest.Carrier {
	running := map[string]bool{}
	for _, c := range RunningContacts() {
		running[strings.TrimPrefix(c.Phone, "+")] = true
	}
	return &siptest.Carrier{
		Listen: "127.0.0.1:0",
		Answer: func(i siptest.Invite) siptest.Script {
			script := siptest.Script{
				Ring: 100 * time.Millisecond, After: 600 * time.Millisecond, Status: http.StatusOK,
				Talk: siptest.Person{Greeting: Hello, Lines: Lines()}.Talk,
			}
			to := strings.TrimPrefix(i.To, "+")
			if !running[to] {
				return script
			}
			script.After, script.Talk = 4*time.Second, siptest.Person{Greeting: Hello, Lines: []string{"about ten", "on paper"}}.Talk
			switch to[len(to)-1] {
			case '0', '5':
				script.Status = 0 // rings until the call is canceled
			case '2':
				script.After, script.Status = time.Second, busyHere
			case '3', '7':
				script.Talk = siptest.Person{Greeting: Hello, Lines: []string{"sorry no time"}}.Talk
			}
			return script
		},
	}
}

// A hook is a received webhook.
type hook struct {
	kind, id string
	verified bool
}

// A Receiver accepts the demo's webhooks and verifies their signatures
// (standardwebhooks.com).
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
		_ = r.http.Serve(l) // the error is ErrServerClosed
	}()
	return r, nil
}

// Addr returns host:port.
func (r *Receiver) Addr() string { return r.listen.Addr().String() }

func (r *Receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 4<<20))
	if err != nil {
		return
	}
	var event struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(body, &event) != nil {
		event.Type = "an invalid event"
	}
	h := hook{kind: event.Type, id: req.Header.Get("Webhook-Id"), verified: SignedBy(Secret, req.Header, body)}
	select {
	case r.hooks <- h:
	default: // dropped, because the demo no longer reads webhooks
	}
	w.WriteHeader(http.StatusNoContent)
}

// SignedBy verifies a Standard Webhooks 1.0.0 signature.
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

// Close stops the receiver.
func (r *Receiver) Close() {
	_ = r.http.Close()
	<-r.over
}

// Number is fictional (NANP 555-0100 to 555-0199).
const Number = "+12025550199"

// Operator is the dashboard login of the demo.
const Operator = "owner@harborbooks.example"

// ErrUnfinished means that the demo's call did not complete.
var ErrUnfinished = errors.New("the demo's call did not complete")
