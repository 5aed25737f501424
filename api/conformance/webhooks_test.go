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
	checkAll(t, "W", []statement{
		{1, "an answered call sends call_ended and then call_analyzed", completedCallEvents},
		{2, "a failed call sends only call_ended", failedCallEvents},
		{3, "an event has the call and the client's metadata, without the contact id", eventMembers},
		{4, "a rejected delivery is retried with the same webhook-id and a new signature", retriedDelivery},
		{5, "during a rotation, both secrets sign", rotatedSecret},
		{6, "an endpoint receives only the events it subscribed to", subscriptions},
		{7, "410 disables an endpoint; redirects are not followed", goneAndRedirects},
		{8, "call_analyzed is sent after recording and analysis have finished", analyzedAfterSettling},
	})
}

const (
	hookSecret   = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	formerSecret = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

type delivery struct {
	id, signatures string
	body           map[string]any
	formerValid    bool // the former secret also verifies it
}

// A receiver accepts webhooks with a valid signature.
type receiver struct {
	*httptest.Server

	mu         sync.Mutex
	status     func(n delivery) int // status of the response; nil means 200
	deliveries []delivery
	forged     int
}

// addWebhook creates an endpoint of the organization. keys are further YAML of the endpoint.
func (o *organization) addWebhook(t *testing.T, keys string, status func(delivery) int) *receiver {
	t.Helper()
	r := &receiver{status: status}
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
		n := delivery{id: req.Header.Get("Webhook-Id"), signatures: req.Header.Get("Webhook-Signature"), formerValid: former.Verify(text, req.Header) == nil}
		if err != nil || present.Verify(text, req.Header) != nil || json.Unmarshal(text, &n.body) != nil {
			r.forged++
		}
		if fault := o.s.typed.checkEvent(req.Context(), o.s.url, fmt.Sprint(n.body["type"]), text); fault != nil {
			t.Error(fault)
		}
		r.deliveries = append(r.deliveries, n)
		if r.status != nil {
			w.WriteHeader(r.status(n))
		}
	}))
	t.Cleanup(r.Close)
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, webhooks: [{url: %q, secret: %q%s}]}]", o.name, r.URL+"/hook", hookSecret, keys))
	return r
}

// waitFor waits for exactly n deliveries and returns them.
func (r *receiver) waitFor(t *testing.T, n int) (all []delivery) {
	t.Helper()
	waitUntil(t, fmt.Sprintf("%d deliveries arrive", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		all = slices.Clone(r.deliveries)
		return len(all) >= n
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forged > 0 || len(r.deliveries) > n {
		t.Fatalf("%d deliveries, %d with a wrong signature", len(r.deliveries), r.forged)
	}
	return all
}

func kinds(all []delivery) (kinds []string) {
	for _, n := range all {
		kinds = append(kinds, fmt.Sprint(n.body["type"]))
	}
	return kinds
}

// talkingNumber returns the number of a callee who speaks one line and hangs up.
func (s *service) talkingNumber() string {
	return s.phone(siptest.Script{Status: http.StatusOK, Talk: siptest.Person{Lines: []string{"when do you open"}}.Talk})
}

func completedCallEvents(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.addWebhook(t, "", nil)
	id := o.place(t, s.talkingNumber())
	all := r.waitFor(t, 2)
	if got := kinds(all); !slices.Equal(got, []string{"call_ended", "call_analyzed"}) {
		t.Errorf("%v", got)
	}
	for _, n := range all {
		if n.body["call_id"] != id || n.body["event_id"] != n.id || n.body["organization_id"] != o.id {
			t.Errorf("%v", n.body)
		}
	}
	if all[0].id == all[1].id {
		t.Error("both events have the same id")
	}
}

func failedCallEvents(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.addWebhook(t, "", nil)
	o.await(t, o.place(t, s.busyNumber()), "failed")
	id := o.place(t, s.talkingNumber()) // its webhooks follow all webhooks of the first call
	o.await(t, id, "ended")
	all := r.waitFor(t, 3)
	if got := kinds(all); !slices.Equal(got, []string{"call_ended", "call_ended", "call_analyzed"}) {
		t.Errorf("%v", got)
	}
	if c := all[0].body["call"].(map[string]any); c["status"] != "failed" || c["disconnection_reason"] != "busy" {
		t.Errorf("%v", c)
	}
}

func eventMembers(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.addWebhook(t, "", nil)
	o.do(t, "POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":%q,"metadata":{"order":"A-1","contact_id":"mine","campaign_id":"mine"}}`, s.busyNumber())).want(t, 202)
	n := r.waitFor(t, 1)[0].body
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
			t.Errorf("%s is %v in the event, %v in the call", k, v, call[k])
		}
	}
}

func retriedDelivery(t *testing.T, s *service) {
	o := s.organization(t)
	fails := 1
	r := o.addWebhook(t, ", events: [call_ended]", func(delivery) int {
		if fails--; fails >= 0 {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	o.place(t, s.busyNumber())
	if all := r.waitFor(t, 2); all[0].id != all[1].id || all[0].signatures == all[1].signatures {
		t.Errorf("ids %s and %s, signatures %s and %s", all[0].id, all[1].id, all[0].signatures, all[1].signatures)
	}
}

func rotatedSecret(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.addWebhook(t, fmt.Sprintf(", events: [call_ended], previous_secret: %q", formerSecret), nil)
	o.place(t, s.busyNumber())
	if n := r.waitFor(t, 1)[0]; !n.formerValid || len(strings.Fields(n.signatures)) != 2 {
		t.Errorf("signed %s", n.signatures)
	}
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, webhooks: [{url: %q, secret: %q, events: [call_ended]}]}]", o.name, r.URL+"/hook", hookSecret))
	o.place(t, s.busyNumber())
	if n := r.waitFor(t, 2)[1]; n.formerValid || len(strings.Fields(n.signatures)) != 1 {
		t.Errorf("after the rotation: signed %s", n.signatures)
	}
}

func subscriptions(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.addWebhook(t, ", events: [call_analyzed]", nil)
	o.place(t, s.busyNumber())
	o.place(t, s.talkingNumber())
	if got := kinds(r.waitFor(t, 1)); !slices.Equal(got, []string{"call_analyzed"}) {
		t.Errorf("%v", got)
	}
}

func goneAndRedirects(t *testing.T, s *service) {
	o := s.organization(t)
	inner := 0
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner++ }))
	t.Cleanup(target.Close)
	r := o.addWebhook(t, ", events: [call_ended]", func(delivery) int { return http.StatusGone })
	o.await(t, o.place(t, s.busyNumber()), "failed")
	r.waitFor(t, 1)
	o.await(t, o.place(t, s.busyNumber()), "failed")
	moved := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, webhooks: [{url: %q, secret: %q}]}]", o.name, moved.URL, hookSecret))
	o.place(t, s.busyNumber())
	waitUntil(t, "the redirect counts as a failure", func() bool {
		var n int
		err := s.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM webhook_deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id WHERE e.org_id = $1 AND d.last_status = 307", o.id).Scan(&n)
		return err == nil && n > 0
	})
	if inner != 0 {
		t.Error("the redirect was followed")
	}
	r.waitFor(t, 1) // no further delivery comes
}

func analyzedAfterSettling(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, fmt.Sprintf("organizations: [{name: %s, agents: [{name: sales, published: true, analysis: {summary: true, success: true}}]}]", o.name))
	r := o.addWebhook(t, ", events: [call_analyzed]", nil)
	o.place(t, s.talkingNumber())
	c := r.waitFor(t, 1)[0].body["call"].(map[string]any)
	if c["recording_status"] != "ready" || c["recording_url"] == nil {
		t.Errorf("recording %v, %v", c["recording_status"], c["recording_url"])
	}
	if status := c["analysis_status"]; status != "complete" && status != "failed" || status == "complete" && c["call_analysis"] == nil {
		t.Errorf("analysis %v, %v", status, c["call_analysis"])
	}
}
