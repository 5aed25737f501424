package openapi

import "github.com/danielgtaylor/huma/v2"

const contactID = "con_06C9T2Q8VJ3M5N7P1R4S6W8X0E"

func contactPaths(one []*huma.Param, missing map[int]string) map[string]*huma.PathItem {
	attested := map[string]any{"confirmed": true}
	return map[string]*huma.PathItem{
		"/v1/campaigns/{id}/calls": {Post: &huma.Operation{
			OperationID: "add-calls", Tags: []string{"campaigns"}, Summary: "Add a batch of calls to a campaign",
			Description: "All or nothing: one row that cannot be called, or one number on a do-not-call list, rejects the batch; " +
				"error.import has the report. " +
				"A campaign accepts calls until it is completed or canceled. Numbers it already has are called again.",
			Parameters: append([]*huma.Param{{
				Name: "Idempotency-Key", In: "header", Required: true, Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(255)},
				Description: "A key is valid for one campaign and 24 hours. " +
					"A repeated request returns the first response; a rejected batch frees the key.",
			}}, one...),
			RequestBody: bodyOf("Calls", map[string]any{
				"calls": []any{map[string]any{"phone": "+12025550124", "name": "Grace"}}, "attestation": attested,
			}),
			Responses: refusals(map[string]*huma.Response{"201": success("The batch was accepted", map[string]any{
				"campaign": shortCampaign(), "import": with(listOfRows(), map[string]any{"kind": "batch"}),
				"dnc_screen": dncScreen(), "blockers": []any{},
			})}, map[int]string{
				404: "campaign_not_found", 409: "campaign_closed, idempotency_key_in_flight, market_package_not_installed", 413: "request_too_large",
				422: "idempotency_key_required, invalid_request, calls_required, calls_batch_too_large, attestation_invalid, idempotency_key_reuse, " +
					"contact_rows_rejected, calls_rejected, calls_dnc_matched",
				502: "contact_file_storage_unavailable",
			}),
		}},
		"/v1/campaigns/{id}/progress": {Get: &huma.Operation{
			OperationID: "campaign-progress", Tags: []string{"campaigns"}, Summary: "Read the progress of a campaign", Parameters: one,
			Description: "States and reasons without contacts are omitted. `ready` plus `holds` is the number of pending contacts; " +
				"`held_reasons` counts each held contact once.",
			Responses: refusals(map[string]*huma.Response{"200": success("The progress", progress())}, missing),
		}},
		"/v1/contacts/withdraw": {Post: &huma.Operation{
			OperationID: "withdraw-contacts", Tags: []string{"campaigns"}, Summary: "Withdraw contacts from campaigns",
			Description: "Applies to all scheduled, running and paused campaigns of the organization. " +
				"A number matches all contacts with the same last ten digits, " +
				"in any country. An invalid address does not fail the request.",
			RequestBody: bodyOf("Withdrawal", map[string]any{"phones": []any{"+12025550123", 12025550124, "555"}, "contact_ids": []any{contactID}}),
			Responses: refusals(map[string]*huma.Response{"200": success("The result for each address", map[string]any{
				"withdrawn":         []any{map[string]any{"contact_id": contactID, "campaign_id": campaignID, "phone": "+12025550123"}},
				"already_withdrawn": []any{}, "invalid": []any{}, "not_found": []any{"555"},
				"not_withdrawable": []any{map[string]any{
					"contact_id": "con_06C9T2Q8VJ3M5N7P1R4S6W8X0F", "campaign_id": campaignID, "phone": "+12025550124", "reason": "in_call",
				}},
			})}, map[int]string{413: "request_too_large", 422: "invalid_request, addresses_required, addresses_too_many"}),
		}},
		"/v1/imports/{id}/report": {Get: &huma.Operation{
			OperationID: "import-report", Tags: []string{"campaigns"}, Summary: "Download the result of each row of an import",
			Parameters: append(
				pathID("import", importID),
				&huma.Param{
					Name: "format", In: "query", Description: "Format of the file",
					Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"csv", "xlsx"}, Default: "csv"},
				},
				&huma.Param{
					Name: "only", In: "query", Description: "dnc_match: only rows on a do-not-call list",
					Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"dnc_match"}},
				},
			),
			Responses: refusals(map[string]*huma.Response{"200": file()}, map[int]string{
				404: "import_not_found", 409: "dnc_screen_required", 422: "report_format_invalid, report_filter_invalid",
			}),
		}},
	}
}

// file is a response that is not JSON.
func file() *huma.Response {
	table := "row,phone,phone_normalized,name,timezone,status,codes,messages,contact_state,registry\n" +
		"1,+12025550123,+12025550123,Ada,,accepted,,,pending,\n"
	return &huma.Response{Description: "The report file", Content: map[string]*huma.MediaType{
		"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}, Example: table},
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	}}
}

func progress() map[string]any {
	return map[string]any{
		"campaign_id": campaignID, "status": "running", "as_of": 1795222586,
		"pace": map[string]any{
			"calls_per_minute": 20, "dialed_last_60s": 18, "in_flight": 7, "window_open": true,
			"next_window_at": nil, "next_call_at": nil, "limited_by": []any{},
		},
		"counters": map[string]any{
			"contacts": 1000, "attempts": 1312, "answered": 402, "voicemail": 180,
			"ivr": 3, "no_answer": 520, "busy": 60, "declined": 100, "failed": 40,
			"redials_scheduled": 97, "calls_in_progress": 7,
		},
		"by_state": map[string]any{"pending": 300, "in_call": 7, "awaiting": 3, "done": 600, "exhausted": 60, "suppressed": 30},
		"ready":    120, "holds": 180, "held_reasons": map[string]any{"outside_legal_window": 147, "retry_wait": 30, "frequency_cap": 3},
		"suppressed_reasons":       map[string]any{"dnc_suppressed": 20, "withdrawn_by_client": 6, "geo_rejected": 3, "frequency_capped": 1},
		"dnc_suppressed_at_launch": 15, "dnc_suppressed_mid_campaign": 5,
		"cost":      map[string]any{"amount": 118.25, "per_answered_call": 0.294154229},
		"budget":    map[string]any{"limit": 250, "spent": 118.25, "in_progress": 1.5, "left": 130.25, "expected_per_call": 0.25},
		"frequency": map[string]any{"held": 3, "blocked": 1, "by_governing_cap": map[string]any{"daily": 2, "rolling_7d": 2}},
	}
}
