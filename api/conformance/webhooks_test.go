package conformance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/parley-voice/parley/sip/siptest"
)

// TestWebhooks covers webhooks of calls.
func TestWebhooks(t *testing.T) {
	hold(t, "W", []statement{
		{1, "a call that took place is told by call_ended and then by call_analyzed", toldTwice},
		{2, "a call that failed is told by call_ended alone", toldOnce},
		{3, "a notice has the call, the client's metadata, and no contact of ours", noticeHasItsMembers},
		{4, "a notice that is not taken comes again with the same webhook-id, signed anew", comesAgain},
		{5, "while a secret is changed both sign", twoSecrets},
		{6, "an endpoint gets what it subscribed to alone", subscriptions},
		{7, "410 disables an endpoint, and redirects are not followed", goneAndRedirects},
		{8, "the notice of analysis has recording and analysis settled", analyzedIsSettled},
	})
}

const (
	hookSecret   = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	formerSecret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// A note is a received webhook.
type note struct {
	id, signatures string
	body           map[string]any
	knowsFormer    bool // it also verifies with the former secret
}

// A receiver accepts webhooks with a valid signature.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	answer func(n note) int // nil is 200
	notes  []note
	forged int
}

// hooked creates an endpoint of the organization; keys are more of its YAML.
func (o *organization) hooked(t *testing.T, keys string, answer func(note) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	present, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	former, err := standardwebhooks.NewWebhook(formerSecret)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		n := note{id: req.Header.Get("Webhook-Id"), signatures: req.Header.Get("Webhook-Signature"), knowsFormer: former.Verify(text, req.Header) == nil}
		if err != nil || present.Verify(text, req.Header) != nil || json.Unmarshal(text, &n.body) != nil {
			r.forged++
		}
		r.notes = append(r.notes, n)
		if r.answer != nil {
			w.WriteHeader(r.answer(n))
		}
	}))
	t.Cleanup(r.Close)
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, webhooks: [{url: %q, secret: %q%s}]}]", o.name, r.URL+"/hook", hookSecret, keys))
	return r
}

// came waits for n webhooks and returns them.
func (r *receiver) came(t *testing.T, n int) (all []note) {
	t.Helper()
	until(t, fmt.Sprintf("%d notices come", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		all = slices.Clone(r.notes)
		return len(all) >= n
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forged > 0 || len(r.notes) > n {
		t.Fatalf("%d notices, %d forged", len(r.notes), r.forged)
	}
	return all
}

func kinds(all []note) (kinds []string) {
	for _, n := range all {
		kinds = append(kinds, fmt.Sprint(n.body["type"]))
	}
	return kinds
}

// talks returns the number of a callee who says something and hangs up.
func (s *service) talks() string {
	return s.phone(siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Lines: []string{"when do you open"}}.Talk})
}

func toldTwice(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.hooked(t, "", nil)
	id := o.place(t, s.talks())
	all := r.came(t, 2)
	if got := kinds(all); !slices.Equal(got, []string{"call_ended", "call_analyzed"}) {
		t.Errorf("%v", got)
	}
	for _, n := range all {
		if n.body["call_id"] != id || n.body["event_id"] != n.id || n.body["organization_id"] != o.id {
			t.Errorf("%v", n.body)
		}
	}
	if all[0].id == all[1].id {
		t.Error("both have one id")
	}
}

func toldOnce(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.hooked(t, "", nil)
	o.await(t, o.place(t, s.busy()), "failed")
	id := o.place(t, s.talks()) // its webhooks follow all of the first call's
	o.await(t, id, "ended")
	all := r.came(t, 3)
	if got := kinds(all); !slices.Equal(got, []string{"call_ended", "call_ended", "call_analyzed"}) {
		t.Errorf("%v", got)
	}
	if c := all[0].body["call"].(map[string]any); c["status"] != "failed" || c["disconnection_reason"] != "busy" {
		t.Errorf("%v", c)
	}
}

func noticeHasItsMembers(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.hooked(t, "", nil)
	o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q,"metadata":{"order":"A-1","contact_id":"mine","campaign_id":"mine"}}`, s.busy())).is(t, 202)
	n := r.came(t, 1)[0].body
	for _, k := range []string{"type", "event", "event_id", "timestamp", "organization_id", "call_id", "metadata", "call"} {
		if n[k] == nil {
			t.Errorf("no %s", k)
		}
	}
	if m := n["metadata"].(map[string]any); len(m) != 1 || m["order"] != "A-1" {
		t.Errorf("metadata %v", m)
	}
	call := o.do(t, "GET", "/v1/calls/"+n["call_id"].(string), "").object(t)
	for k, v := range n["call"].(map[string]any) {
		if fmt.Sprint(call[k]) != fmt.Sprint(v) {
			t.Errorf("%s is %v in the notice, %v in the call", k, v, call[k])
		}
	}
}

func comesAgain(t *testing.T, s *service) {
	o := s.organization(t)
	fails := 1
	r := o.hooked(t, ", events: [call_ended]", func(note) int {
		if fails--; fails >= 0 {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	o.place(t, s.busy())
	if all := r.came(t, 2); all[0].id != all[1].id || all[0].signatures == all[1].signatures {
		t.Errorf("ids %s and %s, signatures %s and %s", all[0].id, all[1].id, all[0].signatures, all[1].signatures)
	}
}

func twoSecrets(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.hooked(t, fmt.Sprintf(", events: [call_ended], previous_secret: %q", formerSecret), nil)
	o.place(t, s.busy())
	if n := r.came(t, 1)[0]; !n.knowsFormer || len(strings.Fields(n.signatures)) != 2 {
		t.Errorf("signed %s", n.signatures)
	}
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, webhooks: [{url: %q, secret: %q, events: [call_ended]}]}]", o.name, r.URL+"/hook", hookSecret))
	o.place(t, s.busy())
	if n := r.came(t, 2)[1]; n.knowsFormer || len(strings.Fields(n.signatures)) != 1 {
		t.Errorf("afterwards signed %s", n.signatures)
	}
}

func subscriptions(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.hooked(t, ", events: [call_analyzed]", nil)
	o.place(t, s.busy())
	o.place(t, s.talks())
	if got := kinds(r.came(t, 1)); !slices.Equal(got, []string{"call_analyzed"}) {
		t.Errorf("%v", got)
	}
}

func goneAndRedirects(t *testing.T, s *service) {
	o := s.organization(t)
	inner := 0
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner++ }))
	t.Cleanup(target.Close)
	r := o.hooked(t, ", events: [call_ended]", func(note) int { return http.StatusGone })
	o.await(t, o.place(t, s.busy()), "failed")
	r.came(t, 1)
	o.await(t, o.place(t, s.busy()), "failed")
	moved := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, webhooks: [{url: %q, secret: %q}]}]", o.name, moved.URL, hookSecret))
	o.place(t, s.busy())
	until(t, "the redirect is taken for a failure", func() bool {
		var n int
		err := s.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE e.org_id = $1 AND d.last_status = 307", o.id).Scan(&n)
		return err == nil && n > 0
	})
	if inner != 0 {
		t.Error("the redirect was followed")
	}
	r.came(t, 1) // and no more
}

func analyzedIsSettled(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, agents: [{name: sales, published: true, analysis: {summary: true, success: true}}]}]", o.name))
	r := o.hooked(t, ", events: [call_analyzed]", nil)
	o.place(t, s.talks())
	c := r.came(t, 1)[0].body["call"].(map[string]any)
	if c["recording_status"] != "ready" || c["recording_url"] == nil {
		t.Errorf("recording %v, %v", c["recording_status"], c["recording_url"])
	}
	if status := c["analysis_status"]; status != "complete" && status != "failed" || status == "complete" && c["call_analysis"] == nil {
		t.Errorf("analysis %v, %v", status, c["call_analysis"])
	}
}
