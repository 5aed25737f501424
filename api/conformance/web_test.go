package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/mediaclock"
	"github.com/parley-voice/parley/sip/siptest"
	"github.com/parley-voice/parley/webrtc/ice"
	"github.com/parley-voice/parley/webrtc/webrtctest"
)

// TestWebCalls covers POST /v1/calls/web and the call.
func TestWebCalls(t *testing.T) {
	checkAll(t, "V", []statement{
		{1, "a valid order returns 201 with the join data and a queued call", webOrder},
		{2, "an unknown agent returns 404 agent_not_found, an unpublished one 409 agent_not_published, one without its provider 503 agent_dispatch_failed", webUnusableAgent},
		{3, "invalid bodies and missing variables return 422 invalid_request", webSchema},
		{4, "a repeat with the same Idempotency-Key returns the same call and token; another body returns 422 idempotency_key_reuse; a rejection frees the key", webReplay},
		{5, "the token is neither stored nor logged", webTokenSecret},
		{6, "a call without a join ends with never_joined and sends only call_ended; its token becomes invalid", webNotJoined},
		{7, "end before the join returns the call as ended, cancelled", webCancelled},
		{8, "a joined call is queued, ongoing, ended; it has turns, transcript, recording and both webhook events", webConversation},
		{9, "end of a joined call sends bye with api_hangup to the browser", webHangup},
	})
}

func (o *organization) web(t *testing.T, more string, headers ...string) response {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	return o.do(t, "POST", "/v1/calls/web", `{"agent_id":"sales"`+more+`}`, headers...)
}

func webOrder(t *testing.T, s *service) {
	o := s.organization(t)
	before := time.Now()
	w := o.web(t, `"metadata":{"external_id":"x"},"client":"browser","max_duration_s":60,"unknown":1`).want(t, 201).object(t)
	hasMembers(t, w, map[string]any{
		"status": "queued", "call_type": "web", "token_type": "Bearer", "agent_id": "sales", "max_duration_s": 60, "ice_transport_policy": "all",
		"url": "ws" + strings.TrimPrefix(o.url, "http") + "/rtc?v=1", "whip_url": o.url + "/rtc/whip",
	})
	if at, _ := w["expires_at"].(float64); at < float64(before.Unix()+58) || at > float64(time.Now().Unix()+61) {
		t.Errorf("expires_at %v", w["expires_at"])
	}
	if _, ok := w["ice_servers"].([]any); !ok || strings.Count(w["access_token"].(string), ".") != 2 {
		t.Errorf("%v", w)
	}
	c := o.do(t, "GET", "/v1/calls/"+w["call_id"].(string), "").want(t, 200).object(t)
	hasMembers(t, c, map[string]any{"status": "queued", "call_type": "web", "to_number": "", "trunk_id": nil, "route_id": nil, "dialed_at": nil, "answered_at": nil})
	if all := o.do(t, "GET", "/v1/calls?call_type=web&external_id=x", "").want(t, 200).object(t)["calls"].([]any); len(all) != 1 {
		t.Errorf("listed: %v", all)
	}
}

func webUnusableAgent(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, `organizations: [{name: `+o.name+`, agents: [
		{name: draft, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}},
		{name: unconfigured, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: cartesia}}}]}]`)
	wantError(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"unknown"}`), 404, "agent_not_found")
	wantError(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"draft"}`), 409, "agent_not_published")
	wantError(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"unconfigured"}`), 503, "agent_dispatch_failed")
	wantError(t, s.organization(t).do(t, "POST", "/v1/calls/web", `{"agent_id":"draft"}`), 404, "agent_not_found")
	if n := o.count(t); n != 0 {
		t.Errorf("%d calls were created", n)
	}
}

func webSchema(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, `organizations: [{name: `+o.name+`, agents: [{name: templated, published: true, greeting: "Hello {{first_name}}.", speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]}]`)
	for _, body := range []string{
		`{}`, `{"agent_id":1}`, `{"agent_id":"sales","client":"fax"}`, `{"agent_id":"sales","max_duration_s":7201}`, `[]`, `{`, `{"agent_id":"templated"}`,
	} {
		wantError(t, o.do(t, "POST", "/v1/calls/web", body), 422, "invalid_request")
	}
	o.do(t, "POST", "/v1/calls/web", `{"agent_id":"templated","variables":{"first_name":"Ada"}}`).want(t, 201)
}

func webReplay(t *testing.T, s *service) {
	o := s.organization(t)
	first := o.web(t, "", "Idempotency-Key", "k").want(t, 201)
	again := o.web(t, "", "Idempotency-Key", "k").want(t, 201)
	if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotent-Replayed") != "true" || o.count(t) != 1 {
		t.Errorf("%v and %v", first, again)
	}
	wantError(t, o.web(t, `"client":"sdk"`, "Idempotency-Key", "k"), 422, "idempotency_key_reuse")
	wantError(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"unknown"}`, "Idempotency-Key", "l"), 404, "agent_not_found")
	o.web(t, "", "Idempotency-Key", "l").want(t, 201)
}

func webTokenSecret(t *testing.T, s *service) {
	o := s.organization(t)
	w := o.web(t, "", "Idempotency-Key", "k").want(t, 201).object(t)
	signed := w["access_token"].(string)
	signed = signed[strings.LastIndexByte(signed, '.')+1:]
	for what, text := range map[string]string{"the database": dump(t, s), "the log": s.logged()} {
		if strings.Contains(text, signed) {
			t.Errorf("the token occurs in %s", what)
		}
	}
}

func (s *service) expireTicket(t *testing.T, id string) {
	t.Helper()
	s.exec(t, "UPDATE web_tickets SET expires_at = now() WHERE call_id = $1", id)
}

func webNotJoined(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.addWebhook(t, "", nil)
	w := o.web(t, "").want(t, 201).object(t)
	id := w["call_id"].(string)
	s.expireTicket(t, id)
	c := o.await(t, id, "ended")
	hasMembers(t, c, map[string]any{"disconnection_reason": "never_joined", "hangup_by": "system", "answered_at": nil, "recording_status": "none"})
	all := r.waitFor(t, 1)
	if got := kinds(all); !slices.Equal(got, []string{"call_ended"}) {
		t.Errorf("%v", got)
	}
	var refused *webrtctest.RefusedError
	if err := s.browser(t, w).Join(t.Context()); !errors.As(err, &refused) || refused.Code != "call_ended" {
		t.Errorf("%v", err)
	}
	r.waitFor(t, 1)
}

func webCancelled(t *testing.T, s *service) {
	o := s.organization(t)
	w := o.web(t, "").want(t, 201).object(t)
	c := o.do(t, "POST", "/v1/calls/"+w["call_id"].(string)+"/end", "").want(t, 200).object(t)
	hasMembers(t, c, map[string]any{"status": "ended", "disconnection_reason": "cancelled", "hangup_by": "api"})
	var refused *webrtctest.RefusedError
	if err := s.browser(t, w).Join(t.Context()); !errors.As(err, &refused) || refused.Code != "call_ended" {
		t.Errorf("%v", err)
	}
}

// browser returns a browser with the token of a created web call.
func (s *service) browser(t *testing.T, order map[string]any) *webrtctest.Browser {
	t.Helper()
	endpoint, err := ice.Open(t.Context(), ice.Config{UDP: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	clock := &mediaclock.Clock{Precise: true}
	ctx, quit := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { clock.Run(ctx); close(over) }()
	b := &webrtctest.Browser{URL: order["url"].(string), Token: order["access_token"].(string), Connector: endpoint, Clock: clock}
	t.Cleanup(func() { b.Close(); quit(); <-over; _ = endpoint.Close() })
	return b
}

func webConversation(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.addWebhook(t, "", nil)
	w := o.web(t, "").want(t, 201).object(t)
	id := w["call_id"].(string)
	b := s.browser(t, w)
	if err := b.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	siptest.Person{Lines: []string{"when do you open", "thanks"}}.Talk(t.Context(), b.Leg)
	if c := o.await(t, id, "ongoing"); c["answered_at"] == nil || c["recording_status"] != "in_progress" {
		t.Errorf("%v", c)
	}
	if err := b.Send(map[string]any{"type": "bye"}); err != nil {
		t.Fatal(err)
	}
	c := o.await(t, id, "ended")
	if c["disconnection_reason"] != "callee_hangup" || len(c["transcript"].([]any)) < 3 || c["quality"] == nil {
		t.Errorf("%v", c)
	}
	var turns []json.RawMessage
	if err := json.Unmarshal(o.do(t, "GET", "/v1/calls/"+id+"/turns", "").want(t, 200).body, &turns); err != nil || len(turns) < 2 {
		t.Errorf("%d turns: %v", len(turns), err)
	}
	if got := kinds(r.waitFor(t, 2)); !slices.Equal(got, []string{"call_ended", "call_analyzed"}) {
		t.Errorf("%v", got)
	}
	waitUntil(t, "the recording is ready", func() bool {
		return o.do(t, "GET", "/v1/calls/"+id, "").want(t, 200).object(t)["recording_status"] == "ready"
	})
}

func webHangup(t *testing.T, s *service) {
	o := s.organization(t)
	w := o.web(t, "").want(t, 201).object(t)
	b := s.browser(t, w)
	if err := b.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.await(t, w["call_id"].(string), "ongoing") // before the browser joins, end cancels the call
	c := o.do(t, "POST", "/v1/calls/"+w["call_id"].(string)+"/end", "").want(t, 200).object(t)
	hasMembers(t, c, map[string]any{"status": "ended", "disconnection_reason": "api_hangup", "hangup_by": "api"})
	ctx, cancel := context.WithTimeout(t.Context(), longRing)
	defer cancel()
	if m, err := b.Wait(ctx, 0, func(m webrtctest.Message) bool { return m.Type == "bye" }); err != nil || m.Reason != "api_hangup" {
		t.Errorf("%+v %v", m, err)
	}
}
