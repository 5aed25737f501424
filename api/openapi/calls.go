package openapi

import (
	"maps"

	"github.com/danielgtaylor/huma/v2"
)

const id = "call_06C9T2Q8VJ3M5N7P1R4S6W8X0Z"

func callPaths() map[string]*huma.PathItem {
	one := pathID("call", id)
	missing := map[int]string{404: "call_not_found"}
	return map[string]*huma.PathItem{
		"/v1/calls/phone": {Post: &huma.Operation{
			OperationID: "create-phone-call", Tags: []string{"calls"}, Summary: "Place one outbound call",
			Description: "Registers the call and returns immediately; it is dialed from a durable queue.",
			Parameters: []*huma.Param{{
				Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(255)},
				Description: "Repeating the key returns the call as created. Kept for 24 hours.",
			}},
			RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
				"application/json": {
					Schema:  &huma.Schema{Ref: "#/components/schemas/PhoneCall"},
					Example: map[string]any{"agent_id": "demo", "to_number": "+12025550123", "variables": map[string]any{"first_name": "Ada"}},
				},
			}},
			Responses: refusals(map[string]*huma.Response{"202": success("The call is queued", queuedCall())}, map[int]string{
				400: "caller_number_not_allowed, caller_number_outside_grant_pool, destination_number_invalid, ring_duration_invalid",
				403: "agent_not_in_subgroup, destination_not_allowed",
				404: "trunk_not_found, subgroup_not_found",
				409: "agent_subgroup_ambiguous, agent_not_published, idempotency_key_in_flight",
				413: "request_too_large",
				422: "invalid_request, idempotency_key_reuse",
				429: "dial_queue_full, subgroup_concurrency_limit, subgroup_rate_limit, organization_daily_limit, " +
					"organization_budget_exceeded",
			}),
		}},
		"/v1/calls/web": {Post: createWeb()},
		"/v1/calls": {Get: &huma.Operation{
			OperationID: "list-calls", Tags: []string{"calls"}, Summary: "List calls",
			Parameters: filters(),
			Responses: refusals(map[string]*huma.Response{"200": success("A page of calls", map[string]any{
				"calls": []any{endedSummary()}, "has_more": false, "next_cursor": nil,
			})}, map[int]string{400: "invalid_cursor, invalid_filter_value"}),
		}},
		"/v1/calls/{id}": {Get: &huma.Operation{
			OperationID: "get-call", Tags: []string{"calls"}, Summary: "Read a call", Parameters: one,
			Responses: refusals(map[string]*huma.Response{"200": success("The call", endedCall())}, missing),
		}},
		"/v1/calls/{id}/turns": {Get: &huma.Operation{
			OperationID: "get-call-turns", Tags: []string{"calls"}, Summary: "Read a call's turn metrics", Parameters: one,
			Responses: refusals(map[string]*huma.Response{"200": success("One item per turn", turns())}, missing),
		}},
		"/v1/calls/{id}/end": {Post: &huma.Operation{
			OperationID: "end-call", Tags: []string{"calls"}, Summary: "End a call", Parameters: one,
			Description: "Hangs up an active call. A queued call is canceled before dialing.",
			Responses:   refusals(map[string]*huma.Response{"200": success("The call", endedCall())}, missing),
		}},
	}
}

func createWeb() *huma.Operation {
	return &huma.Operation{
		OperationID: "create-web-call", Tags: []string{"calls"}, Summary: "Let a browser call an agent",
		Description: "Registers the call and returns a token for a browser or SDK to join it, once and within one minute.",
		Parameters: []*huma.Param{{
			Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(255)},
			Description: "Repeating the key returns the same call and token. Kept for 24 hours.",
		}},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {
				Schema:  &huma.Schema{Ref: "#/components/schemas/WebCall"},
				Example: map[string]any{"agent_id": "demo", "variables": map[string]any{"first_name": "Ada"}, "client": "browser"},
			},
		}},
		Responses: refusals(map[string]*huma.Response{"201": success("The call waits to be joined", webCall())}, map[int]string{
			404: "agent_not_found",
			409: "agent_not_published, idempotency_key_in_flight",
			413: "request_too_large",
			422: "invalid_request, idempotency_key_reuse",
			429: "organization_daily_limit, organization_budget_exceeded",
			503: "agent_dispatch_failed",
		}),
	}
}

// several ends the description of a filter with several values.
const several = "; up to 100 values, comma-separated or repeated"

func filters() []*huma.Param {
	return append([]*huma.Param{
		filter("status", "queued, ringing, ongoing, ended or failed"+several),
		filter("call_type", "phone or web"+several),
		filter("agent_id", "Names of agents"+several),
		filter("campaign_id", "IDs of campaigns"+several),
		filter("contact_id", "IDs of contacts"+several),
		filter("import_id", "IDs of imports of contacts"+several),
		filter("trunk_id", "IDs of trunks"+several),
		filter("route_id", "IDs of subgroups"+several),
		filter("to_number", "Called number, in any notation"),
		filter("from_number", "Caller number, in any notation"),
		filter("disconnection_reason", "Why the call ended: callee_hangup, agent_hangup, api_hangup, transferred, voicemail_reached, "+
			"voicemail_dropped, ivr_reached, inactivity, max_duration, media_timeout, agent_error, shutdown, node_lost, never_joined, "+
			"no_answer, busy, declined, invalid_number, blocked, route_error, auth_failed, congestion, cancelled, queue_expired, "+
			"dnc_blocked, caller_number_unavailable, frequency_blocked, window_closed, internal_error, provider_not_configured, "+
			"unknown_after_restart or redirect_refused"+several),
		filter("answered_by", "human, voicemail, ivr, fax or unknown"+several),
		filter("external_id", "external_id of contacts"+several),
		number("created_after", "Only calls created after this time, in epoch seconds"),
		number("created_before", "Only calls created before this time, in epoch seconds"),
		number("min_duration_s", "Shortest duration of the conversation, in seconds"),
		number("max_duration_s", "Longest duration of the conversation, in seconds"),
	}, pages(50, true)...)
}

// filter is a parameter of the query that is a text.
func filter(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: &huma.Schema{Type: huma.TypeString}}
}

// number is a parameter of the query that is a number of at least 0.
func number(name, description string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: description, Schema: &huma.Schema{Type: huma.TypeNumber, Minimum: new(0.0)}}
}

// pages are the parameters that select a page of a list.
func pages(usual int, ordered bool) []*huma.Param {
	limit := &huma.Schema{Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(100.0), Default: usual}
	all := []*huma.Param{
		{Name: "limit", In: "query", Description: "Maximum number of items of the page", Schema: limit},
		filter("cursor", "next_cursor of the page before; valid for the same filters only"),
	}
	if ordered {
		order := &huma.Schema{Type: huma.TypeString, Enum: []any{"asc", "desc"}, Default: "desc"}
		all = append(all, &huma.Param{
			Name: "order", In: "query", Description: "By the time of creation: desc begins with the newest", Schema: order,
		})
	}
	return all
}

func queuedCall() map[string]any {
	c := map[string]any{
		"call_id": id, "call_type": "phone", "direction": "outbound", "status": "queued", "agent_id": "demo", "agent_version": 3,
		"to_number": "+12025550123", "from_number": "+12025550100",
		"trunk_id": "trk_06C9T2Q8VJ3M5N7P1R4S6W8X0A", "route_id": "rte_06C9T2Q8VJ3M5N7P1R4S6W8X0B",
		"campaign_id": nil, "contact_id": nil, "attempt": 1, "metadata": map[string]any{},
		"created_at": 1795222586.123, "dialed_at": nil, "ringing_at": nil, "answered_at": nil, "ended_at": nil,
		"duration_s": nil, "ring_s": nil, "answered_by": nil, "disconnection_reason": nil, "hangup_by": nil, "sip_status": nil, "sip_reason": nil,
		"transfer": nil, "quality": nil, "recording_url": nil, "recording_channels": 2, "recording_status": "none",
		"recording_truncated": false, "call_analysis": nil, "analysis_status": "none", "analysis_error": nil,
	}
	return with(c, map[string]any{
		"amd": nil, "variables": map[string]any{"first_name": "Ada"}, "transcript": []any{},
		"latency": map[string]any{"turns": 0, "turn_ms": nil, "llm_ms": nil, "tts_ms": nil, "asr_ms": nil},
		"usage":   nil, "cost": nil,
	})
}

func endedCall() map[string]any {
	half := func(p50, p95 float64) map[string]any { return map[string]any{"p50": p50, "p95": p95} }
	return with(queuedCall(), map[string]any{
		"status": "ended", "dialed_at": 1795222586.31, "ringing_at": 1795222587.02, "answered_at": 1795222593.4, "ended_at": 1795222641.9,
		"duration_s": 48.5, "ring_s": 6.38, "disconnection_reason": "callee_hangup", "hangup_by": "callee",
		"answered_by": "human", "amd": map[string]any{"confidence": 0.8, "evidence": "short_greeting", "amd_ms": 1840},
		"quality": map[string]any{
			"codec": "PCMU", "mos": 4.3, "round_trip_ms": 38.2, "concealed_ms": 40, "underruns": 0, "ignored_packets": 0,
			"received": map[string]any{"packets": 2424, "lost": 2, "jitter_ms": 3.1, "mos": 4.3},
			"sent":     map[string]any{"packets": 2425, "lost": 0, "jitter_ms": 1.9, "mos": 4.35},
		},
		"recording_url": "https://parley.example/recordings/" + id + ".wav?exp=1795913841&sig=0f3a", "recording_status": "ready",
		"transcript": []any{
			map[string]any{"role": "agent", "text": "Hello, this is Parley.", "start_s": 0.18, "end_s": 1.62, "turn": 0, "interrupted": false},
			map[string]any{"role": "caller", "text": "Hi, is this about my order?", "start_s": 2.1, "end_s": 3.44, "turn": 1, "interrupted": false},
		},
		"latency": map[string]any{
			"turns":   2,
			"turn_ms": half(612, 790),
			"llm_ms":  half(240, 310),
			"tts_ms":  half(120, 160),
			"asr_ms":  half(35, 60),
		},
		"usage": []any{
			map[string]any{"serves": "asr", "provider": "deepgram", "requests": 1, "seconds": 48.5},
			map[string]any{"serves": "llm", "provider": "openai", "requests": 2, "prompt_tokens": 1840, "completion_tokens": 61},
			map[string]any{"serves": "tts", "provider": "elevenlabs", "requests": 3, "characters": 212},
		},
		"cost": cost(),
	})
}

func cost() map[string]any {
	return map[string]any{
		"amount": 0.015411167, "currency": "USD", "prices_as_of": "2026-11-23",
		"items": []any{
			map[string]any{"serves": "asr", "provider": "deepgram", "requests": 1, "seconds": 48.5, "per_minute": 0.0048, "amount": 0.00388},
			map[string]any{
				"serves": "llm", "provider": "openai", "requests": 2, "prompt_tokens": 1840, "completion_tokens": 61,
				"per_million_prompt_tokens": 0.1, "per_million_cached_tokens": 0.01, "per_million_completion_tokens": 0.5, "amount": 0.0002145,
			},
		},
		"trunk": map[string]any{
			"seconds": 48.5, "amount": 0.011316667,
			"legs": []any{map[string]any{"leg": "callee", "seconds": 48.5, "per_minute": 0.014, "amount": 0.011316667}},
		},
		"unpriced": []any{map[string]any{"serves": "tts", "provider": "elevenlabs"}},
	}
}

func webCall() map[string]any {
	return map[string]any{ //nolint:gosec // the token and the credential are an example's
		"call_id": id, "status": "queued", "call_type": "web", "agent_id": "demo", "max_duration_s": 900,
		"access_token": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJjYWxsXzA2In0.c2lnbmF0dXJl",
		"token_type":   "Bearer", "expires_at": 1795222646,
		"url": "wss://parley.example/rtc?v=1", "whip_url": "https://parley.example/rtc/whip",
		"ice_servers": []any{
			map[string]any{"urls": []any{"stun:stun.parley.example:3478"}},
			map[string]any{ //nolint:gosec // as above
				"urls":     []any{"turn:turn.parley.example:3478?transport=udp", "turns:turn.parley.example:443?transport=tcp"},
				"username": "1795223846:" + id, "credential": "c2VjcmV0",
			},
		},
		"ice_transport_policy": "all",
	}
}

func endedSummary() map[string]any {
	c := endedCall()
	for _, k := range []string{"amd", "variables", "transcript", "latency", "usage", "cost"} {
		delete(c, k)
	}
	return c
}

func turns() []any {
	return []any{
		map[string]any{
			"turn": 0, "metrics": map[string]any{"tts_ms": 140.2, "out_ms": 12.5, "turn_ms": 152.7, "raw": map[string]any{}},
			"ending": "answered", "reason": "answered",
		},
		map[string]any{"turn": 1, "metrics": map[string]any{
			"jitter_ms": 20, "vad_ms": 96, "asr_ms": 35, "classifier_ms": 0, "eou_wait_ms": 80,
			"llm_ms": 240, "tts_ms": 120, "out_ms": 21, "turn_ms": 612, "raw": map[string]any{},
		}, "ending": "interrupted", "reason": "sentence_ended", "interrupted": true},
	}
}

func with[V any](c, more map[string]V) map[string]V {
	maps.Copy(c, more)
	return c
}
