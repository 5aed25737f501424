package response

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control"
)

// documented returns type and codes of the contract by status.
func documented() map[int][2]string {
	return map[int][2]string{
		400: {"invalid_request_error", "caller_number_not_allowed caller_number_outside_grant_pool destination_number_invalid ring_duration_invalid invalid_filter_value invalid_cursor"},
		401: {"authentication_error", "api_key_required api_key_unknown api_key_revoked"},
		403: {"permission_error", "agent_not_in_subgroup destination_not_allowed privileged_key_required root_org_key_required"},
		404: {"not_found_error", "trunk_not_found subgroup_not_found call_not_found campaign_not_found import_not_found agent_not_found"},
		409: {"conflict_error", `agent_subgroup_ambiguous agent_not_published launch_blocked campaign_transition_invalid campaign_closed
			market_package_not_installed idempotency_key_in_flight dnc_decision_without_upload dnc_screen_required`},
		422: {"invalid_request_error", `invalid_request idempotency_key_required idempotency_key_reuse campaign_agent_unknown campaign_window_invalid
			campaign_timezone_unknown campaign_classification_invalid campaign_spec_invalid campaign_open_ends_at_required
			campaign_open_ends_at_too_far dialing_route_unresolved dialing_route_ambiguous dialing_binding_incomplete
			working_hours_wider_than_law attestation_import_id_required dnc_decision_invalid contact_rows_rejected report_format_invalid
			report_filter_invalid calls_required calls_batch_too_large attestation_invalid calls_rejected calls_dnc_matched`},
		429: {"rate_limit_error", "api_key_rate_limit_exceeded dial_queue_full subgroup_concurrency_limit subgroup_rate_limit"},
		500: {"api_error", "internal_error"},
		502: {"api_error", "dial_failed contact_file_storage_unavailable"},
		503: {"service_unavailable_error", "voice_backend_unavailable agent_dispatch_failed"},
	}
}

// TestCodes checks that the table has the codes of the contract, and the others that are listed here.
func TestCodes(t *testing.T) {
	want := map[control.Code]int{
		"api_key_expired": 401, "key_scope_insufficient": 403, "request_too_large": 413, "request_budget_exceeded": 429, "organization_daily_limit": 429, "organization_budget_exceeded": 429, "campaign_budget_exceeded": 429, "addresses_required": 422, "addresses_too_many": 422,
		"token_invalid": 401, "token_expired": 401, "token_used": 401, "call_ended": 410, // codes of joining web calls
	}
	for status, row := range documented() {
		if got := typeOf(status); got != row[0] {
			t.Errorf("%d is %s, want %s", status, got, row[0])
		}
		for code := range strings.FieldsSeq(row[1]) {
			want[control.Code(code)] = status
		}
	}
	for code, status := range want {
		if statuses[code] != status {
			t.Errorf("%s is %d, want %d", code, statuses[code], status)
		}
	}
	for code := range statuses {
		if _, ok := want[code]; !ok {
			t.Errorf("%s is neither in the contract nor listed here", code)
		}
	}
}

// TestEveryCodeHasAStatus checks that the table has every declared code.
func TestEveryCodeHasAStatus(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../control/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, e := range v.Values {
				text, err := strconv.Unquote(e.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				declared = append(declared, text)
			}
		}
		return true
	})
	var known []string
	for code := range maps.Keys(statuses) {
		known = append(known, string(code))
	}
	slices.Sort(declared)
	slices.Sort(known)
	if !slices.Equal(declared, known) {
		t.Errorf("control declares %q, the table has %q", declared, known)
	}
}
