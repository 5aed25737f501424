package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

func TestIdempotencyUnderConcurrency(t *testing.T) {
	h := newEnv(t)
	const posts = 50
	answers := make([]response, posts)
	var all sync.WaitGroup
	for i := range posts {
		all.Go(func() { answers[i] = h.do("POST", "/v1/calls/phone", body(""), "Idempotency-Key", "one") })
	}
	all.Wait()
	var first []byte
	fresh := 0
	for _, a := range answers {
		switch {
		case a.status == 409 && a.code() == "idempotency_key_in_flight":
		case a.status == 202:
			if first == nil {
				first = a.body
			}
			if !bytes.Equal(a.body, first) {
				t.Errorf("responses differ: %s and %s", a.body, first)
			}
			if a.header.Get("Idempotent-Replayed") == "" {
				fresh++
			}
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := h.count("SELECT count(*) FROM calls"); n != 1 || fresh != 1 {
		t.Errorf("%d calls, %d new responses", n, fresh)
	}
	// A replay returns the call as it was created, also after the end of the call and with a full
	// queue.
	id := response{body: first}.json(t)["call_id"].(string)
	h.do("POST", "/v1/calls/"+id+"/end", "")
	h.admission.QueueDepth = -1
	a := h.do("POST", "/v1/calls/phone", ` {"to_number":"+12025550123", "agent_id":"sales"}`, "Idempotency-Key", "one")
	if a.status != 202 || !bytes.Equal(a.body, first) || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("replay: %d %s", a.status, a.body)
	}
	if a := h.do("POST", "/v1/calls/phone", body(`"name":"x"`), "Idempotency-Key", "one"); a.status != 422 || a.code() != "idempotency_key_reuse" {
		t.Errorf("another body: %d %s", a.status, a.body)
	}
	// A rejected request frees the key.
	if a := h.do("POST", "/v1/calls/phone", body(""), "Idempotency-Key", "two"); a.code() != "dial_queue_full" {
		t.Errorf("%d %s", a.status, a.body)
	}
	h.admission.QueueDepth = 0
	if a := h.do("POST", "/v1/calls/phone", body(`"name":"y"`), "Idempotency-Key", "two"); a.status != 202 {
		t.Errorf("after a rejection: %d %s", a.status, a.body)
	}
	_, h.key = h.organization("acme")
	if a := h.do("POST", "/v1/calls/phone", body(`"name":"z"`), "Idempotency-Key", "one"); a.status != 202 {
		t.Errorf("another API key: %d %s", a.status, a.body)
	}
	if a := h.do("POST", "/v1/calls/phone", `{"agent_id":`, "Idempotency-Key", "three"); a.code() != "invalid_request" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestList(t *testing.T) {
	h := newEnv(t)
	var want []string // newest first
	for i := range 5 {
		a := h.do("POST", "/v1/calls/phone", fmt.Sprintf(`{"agent_id":"sales","to_number":"+1202555012%d","metadata":{"external_id":"x%d"}}`, i, i))
		want = append([]string{a.json(t)["call_id"].(string)}, want...)
	}
	ids := func(query string) (ids []string, next any) {
		t.Helper()
		a := h.do("GET", "/v1/calls?"+query, "")
		if a.status != 200 {
			t.Fatalf("%s: %d %s", query, a.status, a.body)
		}
		p := a.json(t)
		for _, c := range p["calls"].([]any) {
			ids = append(ids, c.(map[string]any)["call_id"].(string))
		}
		if p["has_more"] != (p["next_cursor"] != nil) {
			t.Errorf("%s: has_more %v, next_cursor %v", query, p["has_more"], p["next_cursor"])
		}
		return ids, p["next_cursor"]
	}
	var walked []string
	query := "limit=2"
	for range 5 {
		page, next := ids(query)
		walked = append(walked, page...)
		if next == nil {
			break
		}
		query = "limit=2&cursor=" + url.QueryEscape(next.(string))
	}
	if fmt.Sprint(walked) != fmt.Sprint(want) {
		t.Errorf("walked %v, want %v", walked, want)
	}
	for query, n := range map[string]int{
		"order=asc": 5, "status=queued": 5, "status=queued,failed&status=ended": 5, "status=ended": 0, "call_type=phone": 5, "call_type=web": 0,
		"agent_id=sales": 5, "agent_id=other": 0, "to_number=12025550123": 1, "to_number=%2B1(202)555-0123": 1, "to_number=2025550123": 1,
		"from_number=12025550100": 5, "external_id=x1,x2": 2, "trunk_id=" + h.trunk: 5, "route_id=" + h.route: 5, "route_id=nope": 0,
		"campaign_id=c": 0, "disconnection_reason=busy": 0, "answered_by=human": 0, "min_duration_s=1": 0,
		"created_after=1": 5, "created_before=1": 0, "unknown=1": 5, "status=": 5,
	} {
		if got, _ := ids(query); len(got) != n {
			t.Errorf("%s: %d calls, want %d", query, len(got), n)
		}
	}
	if got, _ := ids("order=asc&limit=1"); got[0] != want[4] {
		t.Error("asc does not start with the oldest")
	}
	_, next := ids("limit=1")
	cursor := url.QueryEscape(next.(string))
	for query, code := range map[string]string{
		"status=new": "invalid_filter_value", "limit=0": "invalid_filter_value", "limit=101": "invalid_filter_value", "limit=x": "invalid_filter_value",
		"order=up": "invalid_filter_value", "created_after=noon": "invalid_filter_value", "created_after=NaN": "invalid_filter_value", "min_duration_s=-1": "invalid_filter_value",
		"status=%zz": "invalid_filter_value", "to_number=abc": "invalid_filter_value", "agent_id=%00": "invalid_filter_value", "agent_id=%ff": "invalid_filter_value",
		"cursor=x": "invalid_cursor", "cursor=AAAA": "invalid_cursor", "cursor=" + cursor + "A": "invalid_cursor",
		"order=asc&cursor=" + cursor: "invalid_cursor",
	} {
		a := h.do("GET", "/v1/calls?"+query, "")
		if a.status != 400 || a.code() != code {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

// TestCallShape checks that the call object always has exactly the documented keys.
func TestCallShape(t *testing.T) {
	h := newEnv(t)
	id := h.place()
	const summary = `agent_id agent_version analysis_error analysis_status answered_at answered_by attempt call_analysis call_id call_type campaign_id contact_id created_at
		dialed_at direction disconnection_reason duration_s ended_at from_number hangup_by metadata quality recording_channels recording_status recording_truncated recording_url ring_s
		ringing_at route_id sip_reason sip_status status to_number transfer trunk_id`
	check := func(what string, c map[string]any, keys string) {
		t.Helper()
		want := strings.Fields(keys)
		for _, k := range want {
			if _, ok := c[k]; !ok {
				t.Errorf("%s: no %s", what, k)
			}
		}
		if len(c) != len(want) {
			t.Errorf("%s has %d keys, want %d", what, len(c), len(want))
		}
	}
	check("the call", h.do("GET", "/v1/calls/"+id, "").json(t), summary+" amd cost latency transcript usage variables")
	check("the list item", h.do("GET", "/v1/calls", "").json(t)["calls"].([]any)[0].(map[string]any), summary)
	if a := h.do("GET", "/v1/calls/"+id+"/turns", ""); string(a.body) != "[]" {
		t.Errorf("turns of a queued call: %s", a.body)
	}
}

func TestEndRingingAndOngoingCall(t *testing.T) {
	for _, tt := range []struct {
		name, status, end, reason string
		dial                      func(context.Context, media.Target, func(media.Progress)) (media.Leg, error)
	}{
		{"ringing", "ringing", "failed", "cancelled", func(ctx context.Context, _ media.Target, _ func(media.Progress)) (media.Leg, error) {
			<-ctx.Done()
			return nil, &media.DialError{Cause: media.Canceled, Status: 487, Reason: "Request Terminated"}
		}},
		{"ongoing", "ongoing", "ended", "api_hangup", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newEnv(t)
			h.startNode(&carrier{dial: tt.dial}, conversation(func(ctx context.Context, _ pipeline.SessionConfig) (pipeline.Outcome, error) {
				<-ctx.Done()
				return pipeline.Outcome{Reason: pipeline.Stopped}, nil
			}), nil)
			id := h.place()
			h.await(id, tt.status)
			c := h.do("POST", "/v1/calls/"+id+"/end", "").json(t)
			if c["status"] != tt.end || c["disconnection_reason"] != tt.reason || c["hangup_by"] != "api" {
				t.Errorf("%v %v by %v", c["status"], c["disconnection_reason"], c["hangup_by"])
			}
			if again := h.do("POST", "/v1/calls/"+id+"/end", ""); again.status != 200 || again.json(t)["disconnection_reason"] != tt.reason {
				t.Errorf("a second end: %d %s", again.status, again.body)
			}
		})
	}
}

// TestEndOnAnotherNode ends a call through a server that does not run it.
func TestEndOnAnotherNode(t *testing.T) {
	h := newEnv(t)
	h.startNode(&carrier{}, conversation(func(ctx context.Context, _ pipeline.SessionConfig) (pipeline.Outcome, error) {
		<-ctx.Done()
		return pipeline.Outcome{Reason: pipeline.Stopped}, nil
	}), nil)
	h.api.Calls.Live = &control.Live{}
	id := h.place()
	h.await(id, "ongoing")
	if c := h.do("POST", "/v1/calls/"+id+"/end", "").json(t); c["status"] != "ended" || c["disconnection_reason"] != "api_hangup" {
		t.Errorf("%v %v", c["status"], c["disconnection_reason"])
	}
}

func TestFailedCalls(t *testing.T) {
	h := newEnv(t)
	fail := make(chan error, 1)
	h.startNode(&carrier{dial: func(context.Context, media.Target, func(media.Progress)) (media.Leg, error) { return nil, <-fail }}, conversation(twoLines), nil)
	for _, tt := range []struct {
		err        error
		reason, by string
		sip        any
	}{
		{&media.DialError{Cause: media.Busy, Status: 486, Reason: "Busy Here"}, "busy", "callee", 486.0},
		{&media.DialError{Cause: media.NoAnswer}, "no_answer", "system", nil},
		{&media.DialError{Cause: media.RouteError, Status: 503, Reason: "No Route"}, "route_error", "carrier", 503.0},
		{&media.DialError{Cause: media.Failure, Err: context.DeadlineExceeded}, "internal_error", "system", nil},
		{context.DeadlineExceeded, "internal_error", "system", nil},
	} {
		id := h.place()
		fail <- tt.err
		c := h.await(id, "failed")
		if c["disconnection_reason"] != tt.reason || c["hangup_by"] != tt.by || c["sip_status"] != tt.sip || c["recording_url"] != nil || c["answered_at"] != nil {
			t.Errorf("%v: %v by %v, %v", tt.err, c["disconnection_reason"], c["hangup_by"], c["sip_status"])
		}
	}
}

func TestDrainEndsCalls(t *testing.T) {
	h := newEnv(t)
	n := h.startNode(&carrier{}, conversation(func(_ context.Context, b pipeline.SessionConfig) (pipeline.Outcome, error) {
		<-b.Drain // the agent says goodbye
		return pipeline.Outcome{Reason: pipeline.Stopped}, nil
	}), nil)
	id := h.place()
	h.await(id, "ongoing")
	n.Drain()
	if n.Accepting() {
		t.Error("a draining node accepts")
	}
	second := h.place()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	n.Stop(ctx)
	if c := h.await(id, "ended"); c["disconnection_reason"] != "shutdown" || c["hangup_by"] != "system" {
		t.Errorf("%v by %v", c["disconnection_reason"], c["hangup_by"])
	}
	if c := h.do("GET", "/v1/calls/"+second, "").json(t); c["status"] != "queued" {
		t.Errorf("a call placed while draining is %v", c["status"])
	}
}

func TestEpochJSON(t *testing.T) {
	for _, tt := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, "null"},
		{time.Unix(1795222586, 0), "1795222586"},
		{time.UnixMilli(1795222586123), "1795222586.123"},
	} {
		if got, err := json.Marshal(callview.Epoch(tt.at)); err != nil || string(got) != tt.want {
			t.Errorf("%v: %s %v", tt.at, got, err)
		}
	}
}
