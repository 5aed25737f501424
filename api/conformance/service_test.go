package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/sip/siptest"
)

type service struct {
	*process

	bin, database string
	db            *db.DB
	carrier       *siptest.Carrier
	typed         typedDocument

	mu       sync.Mutex
	sections map[string]string // test names by section
	scripts  map[string]func(siptest.Invite) siptest.Script
	numbers  int
}

// sharedService is the service of this test binary.
type sharedService struct {
	once    sync.Once
	err     error
	service *service
}

var shared sharedService

func (o *sharedService) get(t *testing.T) *service {
	t.Helper()
	o.once.Do(func() { o.service, o.err = start(context.WithoutCancel(t.Context())) })
	if o.err != nil {
		t.Fatal(o.err)
	}
	return o.service
}

func (o *sharedService) stop() {
	if s := o.service; s != nil {
		s.stop()
		_ = s.carrier.Close() // its calls have ended
		s.db.Close()
		_ = os.RemoveAll(filepath.Dir(s.bin))
	}
}

func start(ctx context.Context) (*service, error) {
	s := &service{sections: map[string]string{}, scripts: map[string]func(siptest.Invite) siptest.Script{}}
	dir, err := os.MkdirTemp("", "parley-bin-")
	if err != nil {
		return nil, err
	}
	if s.bin, err = compile(ctx, dir); err != nil {
		return nil, err
	}
	if s.database, err = dbtest.Shared(ctx); err != nil {
		return nil, err
	}
	if s.db, err = dbtest.Open(ctx, s.database, 4); err != nil {
		return nil, err
	}
	s.carrier = &siptest.Carrier{Listen: "127.0.0.1:0", Answer: s.answer}
	if err = s.carrier.Start(); err != nil {
		return nil, err
	}
	s.process, err = serve(ctx, s.bin, s.database)
	return s, err
}

// isolated returns an organization of a process with its own settings and database.
func (s *service) isolated(t *testing.T, settings ...string) *organization {
	t.Helper()
	own := &service{bin: s.bin, carrier: s.carrier}
	var err error
	if own.database, err = dbtest.Shared(t.Context()); err != nil {
		t.Fatal(err)
	}
	if own.db, err = dbtest.Open(t.Context(), own.database, 2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.db.Close)
	if own.process, err = serve(t.Context(), s.bin, own.database, settings...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.stop)
	return own.organization(t)
}

func (s *service) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.db.Pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (s *service) rowCount(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := s.db.Pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// claim reserves a section for a test.
func (s *service) claim(t *testing.T, section string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken := s.sections[section]; taken && other != t.Name() {
		t.Errorf("section %s already belongs to %s", section, other)
	}
	s.sections[section] = t.Name()
}

// answer returns the script of a called number. Numbers without a script answer and stay silent.
func (s *service) answer(in siptest.Invite) siptest.Script {
	digits := in.To
	if len(digits) > 11 { // the number was dialed with a prefix
		digits = digits[len(digits)-11:]
	}
	s.mu.Lock()
	script := s.scripts[digits]
	s.mu.Unlock()
	if script != nil {
		return script(in)
	}
	return siptest.Script{Status: http.StatusOK}
}

// phone returns a number with a script; no other test calls it.
func (s *service) phone(script siptest.Script) string {
	return s.phones(func(siptest.Invite) siptest.Script { return script })
}

func (s *service) busyNumber() string {
	return s.phone(siptest.Script{Status: 486, Reason: "Busy Here"})
}

// phones is phone for a script that depends on the call.
func (s *service) phones(script func(siptest.Invite) siptest.Script) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers++
	digits := fmt.Sprintf("1202555%04d", s.numbers)
	s.scripts[digits] = script
	return "+" + digits
}

func (s *service) invitesTo(number string) (all []siptest.Entry) {
	for _, e := range s.carrier.Journal() {
		if strings.HasSuffix(e.To, strings.TrimPrefix(number, "+")) {
			all = append(all, e)
		}
	}
	return all
}

type organization struct {
	s             *service
	id, name, key string
	url           string // URL of the process that serves its requests
}

const organizationYAML = `
organizations:
- name: %s
  agents:
  - name: sales
    published: true
    greeting: "Hello, this is Parley."
    prompt: "Sell."
    analysis: {summary: false, success: false}
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}
  trunks:
  - name: main
    proxy: %q
    caller_numbers: ["+12025550100", "+12025550101"]
    subgroups:
    - {name: default, allowed_destinations: ["1"], agents: [sales], concurrent_calls: 1000, calls_per_minute: 60000}
`

// organization creates an organization whose key has no rate limit.
func (s *service) organization(t *testing.T) *organization {
	t.Helper()
	o := s.empty(t)
	o.apply(t, fmt.Sprintf(organizationYAML, o.name, s.carrier.Proxy()))
	return o
}

// empty creates an organization without any configuration.
func (s *service) empty(t *testing.T) *organization {
	t.Helper()
	o := &organization{s: s, name: control.NewID("org-", time.Now()), url: s.url}
	var err error
	if o.id, err = apikeys.EnsureOrganization(t.Context(), s.db.Pool, o.name); err != nil {
		t.Fatal(err)
	}
	o.key, _ = o.newKey(t, apikeys.Key{RateLimit: apikeys.RateOff})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("organization %s, %s", o.name, o.id)
		}
	})
	return o
}

func (o *organization) newKey(t *testing.T, k apikeys.Key) (secret, id string) {
	t.Helper()
	k.OrgID = o.id
	id, text, err := apikeys.CreateKey(t.Context(), o.s.db.Pool, k)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), id
}

func (o *organization) apply(t *testing.T, text string) {
	t.Helper()
	spec, err := apply.Parse(strings.NewReader(text))
	if err == nil {
		err = apply.Apply(t.Context(), o.s.db.Pool, spec, apply.Options{AllowInsecure: true, Egress: safedial.Rules{Anywhere: true}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// do sends a request with the key of the organization. Headers are pairs of name and value that replace the
// defaults; an empty value removes one.
func (o *organization) do(t *testing.T, method, path, body string, headers ...string) response {
	t.Helper()
	a, err := o.request(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// request is do for goroutines other than that of the test.
func (o *organization) request(ctx context.Context, method, path, body string, headers ...string) (response, error) {
	r, err := http.NewRequestWithContext(ctx, method, o.url+path, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	r.Header.Set("Authorization", "Bearer "+o.key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return response{}, err
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = o.s.typed.checkResponse(ctx, o.s.url, method, path, resp.StatusCode, text)
	}
	return response{resp.StatusCode, resp.Header, text}, errors.Join(err, resp.Body.Close())
}

func (o *organization) place(t *testing.T, number string) string {
	t.Helper()
	a := o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q}`, number))
	id, _ := a.want(t, http.StatusAccepted).object(t)["call_id"].(string)
	return id
}

// await reads a call until it has one of the statuses and returns it.
func (o *organization) await(t *testing.T, id string, statuses ...string) map[string]any {
	t.Helper()
	var c map[string]any
	waitUntil(t, fmt.Sprintf("call %s is %v", id, statuses), func() bool {
		c = o.do(t, "GET", "/v1/calls/"+id, "").want(t, http.StatusOK).object(t)
		for _, s := range statuses {
			if c["status"] == s {
				return true
			}
		}
		return false
	})
	return c
}

func waitUntil(t *testing.T, condition string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout waiting until %s", condition)
		}
	}
}

// hangUpOn is a silent callee who hangs up on a signal.
func hangUpOn(over <-chan struct{}) func(context.Context, media.Leg) {
	return func(ctx context.Context, _ media.Leg) {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
}
