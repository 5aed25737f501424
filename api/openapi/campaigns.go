package openapi

import (
	"github.com/danielgtaylor/huma/v2"
)

const (
	campaignID = "cmp_06C9T2Q8VJ3M5N7P1R4S6W8X0C"
	importID   = "imp_06C9T2Q8VJ3M5N7P1R4S6W8X0D"
)

func campaignPaths() map[string]*huma.PathItem {
	one := pathID("campaign", campaignID)
	missing := map[int]string{404: "campaign_not_found"}
	move := func(id, summary, description string, codes string) *huma.PathItem {
		return movePath(one, id, summary, description, codes)
	}
	return with(contactPaths(one, missing), map[string]*huma.PathItem{
		"/v1/campaigns": {
			Post: &huma.Operation{
				OperationID: "create-campaign", Tags: []string{"campaigns"}, Summary: "Create a campaign, import its list and launch it",
				Description: "Returns 201 if the campaign was created. status says whether dialing started; blockers say why not.",
				Parameters: []*huma.Param{{
					Name: "Idempotency-Key", In: "header", Required: true, Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(255)},
					Description: "Repeating the key returns the campaign as created. Kept for 24 hours.",
				}},
				RequestBody: orForm(bodyOf("Campaign", map[string]any{
					"name": "Spring renewals", "agent_id": "demo", "calls_per_minute": 20, "attestation": map[string]any{"confirmed": true},
					"planned_calls": []any{map[string]any{"phone": "+12025550123", "name": "Ada", "variables": map[string]any{"first_name": "Ada"}}},
					"working_hours": []any{map[string]any{"days": []any{0, 1, 2, 3, 4}, "start": "10:00", "end": "17:00"}},
				})),
				Responses: refusals(map[string]*huma.Response{"201": success("The campaign", checkedCampaign())}, map[int]string{
					409: "idempotency_key_in_flight, market_package_not_installed, campaign_transition_invalid", 413: "request_too_large",
					422: "invalid_request, idempotency_key_required, dnc_decision_invalid, idempotency_key_reuse, campaign_window_invalid, " +
						"campaign_open_ends_at_required, campaign_open_ends_at_too_far, campaign_agent_unknown, campaign_timezone_unknown, " +
						"dialing_route_unresolved, dialing_route_ambiguous, dialing_binding_incomplete, working_hours_wider_than_law, " +
						"campaign_spec_invalid, campaign_classification_invalid, contact_rows_rejected",
					502: "contact_file_storage_unavailable",
				}),
			},
			Get: &huma.Operation{
				OperationID: "list-campaigns", Tags: []string{"campaigns"}, Summary: "List campaigns", Parameters: campaignFilters(),
				Responses: refusals(map[string]*huma.Response{"200": success("A page of campaigns", map[string]any{
					"campaigns": []any{shortCampaign()}, "has_more": false, "next_cursor": nil,
				})}, map[int]string{400: "invalid_cursor, invalid_filter_value"}),
			},
		},
		"/v1/campaigns/{id}": {Get: &huma.Operation{
			OperationID: "get-campaign", Tags: []string{"campaigns"}, Summary: "Read a campaign", Parameters: one,
			Description: "Blockers and warnings are those of a launch now, without an attestation.",
			Responses:   refusals(map[string]*huma.Response{"200": success("The campaign", checkedCampaign())}, missing),
		}},
		"/v1/campaigns/{id}/launch-check": {Get: &huma.Operation{
			OperationID: "check-campaign", Tags: []string{"campaigns"}, Summary: "Check what blocks the launch of a campaign", Parameters: one,
			Responses: refusals(map[string]*huma.Response{"200": success("The checks", map[string]any{
				"blockers": []any{attestationBlocker()}, "warnings": warnings(), "dnc_screen": dncScreen(),
			})}, missing),
		}},
		"/v1/campaigns/{id}/launch": {Post: &huma.Operation{
			OperationID: "launch-campaign", Tags: []string{"campaigns"}, Summary: "Launch a draft", Parameters: one,
			RequestBody: bodyOf("Launch", map[string]any{"attestation": map[string]any{"confirmed": true, "import_id": importID}, "dnc": "skip"}),
			Responses: refusals(map[string]*huma.Response{"200": success("The campaign", checkedCampaign())}, map[int]string{
				404: "campaign_not_found", 409: "launch_blocked, campaign_transition_invalid, dnc_decision_without_upload, dnc_screen_required",
				422: "invalid_request, attestation_import_id_required, dnc_decision_invalid",
			}),
		}},
		"/v1/campaigns/{id}/pause":  move("pause-campaign", "Pause a campaign", "Only active calls continue.", "campaign_transition_invalid"),
		"/v1/campaigns/{id}/resume": move("resume-campaign", "Resume a paused campaign", "", "launch_blocked, campaign_transition_invalid"),
		"/v1/campaigns/{id}/cancel": move("cancel-campaign", "Cancel a campaign permanently",
			"Active calls continue.", "campaign_transition_invalid"),
		"/v1/campaigns/{id}/budget": budgetPath(one),
		"/v1/imports/{id}": {Get: &huma.Operation{
			OperationID: "get-import", Tags: []string{"campaigns"}, Summary: "Read an import",
			Parameters: pathID("import", importID),
			Responses:  refusals(map[string]*huma.Response{"200": success("The list", listOfRows())}, map[int]string{404: "import_not_found"}),
		}},
	})
}

func movePath(one []*huma.Param, id, summary, description, codes string) *huma.PathItem {
	return &huma.PathItem{Post: &huma.Operation{
		OperationID: id, Tags: []string{"campaigns"}, Summary: summary, Description: description, Parameters: one,
		Responses: refusals(map[string]*huma.Response{"200": success("The campaign", movedCampaign())},
			map[int]string{404: "campaign_not_found", 409: codes}),
	}}
}

func budgetPath(one []*huma.Param) *huma.PathItem {
	return &huma.PathItem{Post: &huma.Operation{
		OperationID: "set-campaign-budget", Tags: []string{"campaigns"}, Summary: "Set the budget of a campaign", Parameters: one,
		Description: "Active calls continue. A campaign that waits for its budget continues when it is raised.",
		RequestBody: bodyOf("Budget", map[string]any{"budget": 250}),
		Responses: refusals(map[string]*huma.Response{"200": success("The campaign", movedCampaign())},
			map[int]string{404: "campaign_not_found", 409: "campaign_transition_invalid", 422: "invalid_request, campaign_spec_invalid"}),
	}}
}

func campaignFilters() []*huma.Param {
	return append([]*huma.Param{
		filter("status", "draft, scheduled, running, paused, completed or cancelled"+several),
		filter("agent_id", "Name of the agent"),
		filter("created_via", "api, dashboard, command or system"),
		filter("classification", "marketing, servicing or debt_collection"),
		filter("name", "Beginning of the name"),
		number("created_after", "Only campaigns created at this time or later, in epoch seconds"),
		number("created_before", "Only campaigns created before this time, in epoch seconds"),
	}, pages(20, true)...)
}

func shortCampaign() map[string]any {
	return map[string]any{
		"campaign_id": campaignID, "status": "running", "created_via": "api",
		"launched_via": "api", "name": "Spring renewals", "agent_id": "demo",
		"timezone": "America/New_York", "timezone_source": "organization", "starts_at": nil, "ends_at": nil, "accepts_call_additions": false,
		"calls_per_minute": 20, "call_strategy": "standard", "classification": "marketing", "created_at": 1795222586.123,
		"budget": 250,
	}
}

func movedCampaign() map[string]any {
	return with(shortCampaign(), map[string]any{
		"consent_tier": "pewc", "retry_config": map[string]any{"attempts": 1, "interval_s": 900},
		"duplicate_action": "reject", "use_contact_timezone": false,
		"working_hours": []any{map[string]any{"days": []any{0, 1, 2, 3, 4}, "start": "10:00", "end": "17:00"}},
		"binding": map[string]any{
			"trunk_id": "trk_06C9T2Q8VJ3M5N7P1R4S6W8X0A",
			"route_id": "rte_06C9T2Q8VJ3M5N7P1R4S6W8X0B", "from_number": "+12025550100",
		},
		"import": listOfRows(), "dnc_screen": dncScreen(), "updated_at": 1795222586.123,
		"launched_at": 1795222586.123, "completed_at": nil,
		"cancelled_at": nil, "status_reason": "", "market": "us", "agent_version": 3,
	})
}

func checkedCampaign() map[string]any {
	return with(movedCampaign(), map[string]any{"blockers": []any{}, "warnings": warnings()})
}

func attestationBlocker() map[string]any {
	return map[string]any{"code": "attestation_required", "field": "attestation", "message": "consent was not attested in this request"}
}

func warnings() []any {
	return []any{
		map[string]any{"code": "starts_immediately", "field": "starts_at"},
		map[string]any{"code": "frequency_policy_active", "rolling_7d_cap": 7, "daily_cap": 3, "source": "market_default"},
	}
}

func dncScreen() map[string]any {
	return map[string]any{
		"status": "clean", "checked_rows": 1, "unscreened_rows": 0, "matched_rows": 0, "suppressed_contacts": 0, "hidden_rows": 0,
		"fingerprint": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "items": []any{}, "has_more": false,
		"all_dialable_suppressed": false, "as_of_launch": true, "screened_at": 1795222586,
		"audit_id": 1, "decision": "clean", "import_id": importID,
	}
}

func listOfRows() map[string]any {
	return map[string]any{
		"import_id": importID, "status": "accepted", "rows_seen": 1, "accepted": 1,
		"warned": 0, "rejected": 0, "duplicates_found": 0, "dnc_matched": 0,
		"refusal_code": "", "issues": map[string]any{"total": 0, "shown": 0, "truncated": false, "by_code": map[string]any{}, "items": []any{}},
		"dnc_screen": dncScreen(), "dnc_matches": []any{}, "campaign_id": campaignID,
		"kind": "launch", "created_at": 1795222586.123, "created_via": "api",
		"source_rows_projected": true,
	}
}

// orForm is the body of a creation: JSON, or a two-part form with a file of rows.
func orForm(body *huma.RequestBody) *huma.RequestBody {
	body.Content["multipart/form-data"] = &huma.MediaType{
		Schema: &huma.Schema{
			Type: huma.TypeObject, Required: []string{"campaign", "rows"},
			Description: "The part campaign, followed by the part rows",
			Properties: map[string]*huma.Schema{
				"campaign": {Ref: "#/components/schemas/Campaign"},
				"rows": {
					Type: huma.TypeString, Format: "binary",
					Description: "XLSX or CSV with column names in the first line; up to 128 MiB and 200000 rows. " +
						"If the form has the part rows, the part campaign must not have planned_calls.",
				},
			},
		},
		Encoding: map[string]*huma.Encoding{
			"campaign": {ContentType: "application/json"},
			"rows":     {ContentType: "text/csv, application/vnd.openxmlformats-officedocument.spreadsheetml.sheet, application/octet-stream"},
		},
	}
	return body
}
