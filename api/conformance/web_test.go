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
	hold(t, "V", []statement{
		{1, "a good order is 201 with the members that a browser needs, and a call that is queued", webOrder},
		{2, "an unknown agent is 404 agent_not_found, one that is not published 409 agent_not_published, one whose provider is not set up 503 agent_dispatch_failed", webRefused},
		{3, "what does not fit the schema, and variables that are missing, are 422 invalid_request", webSchema},
		{4, "a repeat with the same Idempotency-Key is the same call and token; another body is 422 idempotency_key_reuse; a refusal frees the key", webReplay},
		{5, "the token stands in no row of the database and no line of the log", webTokenKept},
		{6, "a call that nobody joins ends with never_joined, is told by call_ended alone, and its token joins nothing", webNeverJoined},
		{7, "a call that is ended before it is joined is ended, cancelled", webCancelled},
		{8, "a call that is joined goes from queued over ongoing to ended, has turns, a transcript and a recording, and both notices", webTalks},
		{9, "end hangs a joined call up: api_hangup, and the browser is told", webEnded},
	})
}

func (o *organization) web(t *testing.T, more string, headers ...string) answer {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	return o.do(t, "POST", "/v1/calls/web", `{"agent_id":"sales"`+more+`}`, headers...)
}

func webOrder(t *testing.T, s *service) {
	o := s.organization(t)
	before := time.Now()
	w := o.web(t, `"metadata":{"external_id":"x"},"client":"browser","max_duration_s":60,"unknown":1`).is(t, 201).object(t)
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
	c := o.do(t, "GET", "/v1/calls/"+w["call_id"].(string), "").is(t, 200).object(t)
	hasMembers(t, c, map[string]any{"status": "queued", "call_type": "web", "to_number": "", "trunk_id": nil, "route_id": nil, "dialed_at": nil, "answered_at": nil})
	if all := o.do(t, "GET", "/v1/calls?call_type=web&external_id=x", "").is(t, 200).object(t)["calls"].([]any); len(all) != 1 {
		t.Errorf("listed: %v", all)
	}
}

func webRefused(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, `organizations: [{name: `+o.name+`, agents: [
		{name: draft, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}},
		{name: mute, published: true, speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: cartesia}}}]}]`)
	refused(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"nobody"}`), 404, "agent_not_found")
	refused(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"draft"}`), 409, "agent_not_published")
	refused(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"mute"}`), 503, "agent_dispatch_failed")
	refused(t, s.organization(t).do(t, "POST", "/v1/calls/web", `{"agent_id":"draft"}`), 404, "agent_not_found")
	if n := o.count(t); n != 0 {
		t.Errorf("%d calls are left behind", n)
	}
}

func webSchema(t *testing.T, s *service) {
	o := s.organization(t)
	o.apply(t, `organizations: [{name: `+o.name+`, agents: [{name: needy, published: true, greeting: "Hello {{first_name}}.", speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}]}]`)
	for _, body := range []string{
		`{}`, `{"agent_id":1}`, `{"agent_id":"sales","client":"fax"}`, `{"agent_id":"sales","max_duration_s":7201}`, `[]`, `{`, `{"agent_id":"needy"}`,
	} {
		refused(t, o.do(t, "POST", "/v1/calls/web", body), 422, "invalid_request")
	}
	o.do(t, "POST", "/v1/calls/web", `{"agent_id":"needy","variables":{"first_name":"Ada"}}`).is(t, 201)
}

func webReplay(t *testing.T, s *service) {
	o := s.organization(t)
	first := o.web(t, "", "Idempotency-Key", "k").is(t, 201)
	again := o.web(t, "", "Idempotency-Key", "k").is(t, 201)
	if !bytes.Equal(first.body, again.body) || again.header.Get("Idempotent-Replayed") != "true" || o.count(t) != 1 {
		t.Errorf("%v and %v", first, again)
	}
	refused(t, o.web(t, `"client":"sdk"`, "Idempotency-Key", "k"), 422, "idempotency_key_reuse")
	refused(t, o.do(t, "POST", "/v1/calls/web", `{"agent_id":"nobody"}`, "Idempotency-Key", "l"), 404, "agent_not_found")
	o.web(t, "", "Idempotency-Key", "l").is(t, 201)
}

func webTokenKept(t *testing.T, s *service) {
	o := s.organization(t)
	w := o.web(t, "", "Idempotency-Key", "k").is(t, 201).object(t)
	signed := w["access_token"].(string)
	signed = signed[strings.LastIndexByte(signed, '.')+1:]
	for what, text := range map[string]string{"the database": dump(t, s), "the log": s.logged()} {
		if strings.Contains(text, signed) {
			t.Errorf("the token stands in %s", what)
		}
	}
}

// passed simulates that the minute for joining a call has passed.
func (s *service) passed(t *testing.T, id string) {
	t.Helper()
	if _, err := s.db.Pool.Exec(t.Context(), "UPDATE web_tickets SET expires_at = now() WHERE call_id = $1", id); err != nil {
		t.Fatal(err)
	}
}

func webNeverJoined(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.hooked(t, "", nil)
	w := o.web(t, "").is(t, 201).object(t)
	id := w["call_id"].(string)
	s.passed(t, id)
	c := o.await(t, id, "ended")
	hasMembers(t, c, map[string]any{"disconnection_reason": "never_joined", "hangup_by": "system", "answered_at": nil, "recording_status": "none"})
	all := r.came(t, 1)
	if got := kinds(all); !slices.Equal(got, []string{"call_ended"}) {
		t.Errorf("%v", got)
	}
	var why *webrtctest.RefusedError
	if err := s.browser(t, w).Join(t.Context()); !errors.As(err, &why) || why.Code != "call_ended" {
		t.Errorf("%v", err)
	}
	r.came(t, 1)
}

func webCancelled(t *testing.T, s *service) {
	o := s.organization(t)
	w := o.web(t, "").is(t, 201).object(t)
	c := o.do(t, "POST", "/v1/calls/"+w["call_id"].(string)+"/end", "").is(t, 200).object(t)
	hasMembers(t, c, map[string]any{"status": "ended", "disconnection_reason": "cancelled", "hangup_by": "api"})
	var why *webrtctest.RefusedError
	if err := s.browser(t, w).Join(t.Context()); !errors.As(err, &why) || why.Code != "call_ended" {
		t.Errorf("%v", err)
	}
}

// browser returns a browser with the token of an order.
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

func webTalks(t *testing.T, s *service) {
	o := s.organization(t)
	r := o.hooked(t, "", nil)
	w := o.web(t, "").is(t, 201).object(t)
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
	if err := json.Unmarshal(o.do(t, "GET", "/v1/calls/"+id+"/turns", "").is(t, 200).body, &turns); err != nil || len(turns) < 2 {
		t.Errorf("%d turns: %v", len(turns), err)
	}
	if got := kinds(r.came(t, 2)); !slices.Equal(got, []string{"call_ended", "call_analyzed"}) {
		t.Errorf("%v", got)
	}
	until(t, "the recording is ready", func() bool {
		return o.do(t, "GET", "/v1/calls/"+id, "").is(t, 200).object(t)["recording_status"] == "ready"
	})
}

func webEnded(t *testing.T, s *service) {
	o := s.organization(t)
	w := o.web(t, "").is(t, 201).object(t)
	b := s.browser(t, w)
	if err := b.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.await(t, w["call_id"].(string), "ongoing") // earlier, the call would be canceled
	c := o.do(t, "POST", "/v1/calls/"+w["call_id"].(string)+"/end", "").is(t, 200).object(t)
	hasMembers(t, c, map[string]any{"status": "ended", "disconnection_reason": "api_hangup", "hangup_by": "api"})
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	if m, err := b.Wait(ctx, 0, func(m webrtctest.Message) bool { return m.Type == "bye" }); err != nil || m.Reason != "api_hangup" {
		t.Errorf("%+v %v", m, err)
	}
}
