package control

// Code is the error code of a refusal in the API.
type Code string

// Codes that any request may get.
const (
	CodeInternal            Code = "internal_error"
	CodeKeyRequired         Code = "api_key_required"
	CodeKeyUnknown          Code = "api_key_unknown"
	CodeKeyRevoked          Code = "api_key_revoked"
	CodeKeyExpired          Code = "api_key_expired"        // an addition to the API contract, which allows further codes
	CodeKeyScope            Code = "key_scope_insufficient" // an addition to the API contract, which allows further codes
	CodeKeyRateLimit        Code = "api_key_rate_limit_exceeded"
	CodePrivilegedKey       Code = "privileged_key_required"
	CodeRootOrgKey          Code = "root_org_key_required"
	CodeInvalidRequest      Code = "invalid_request"
	CodeRequestTooLarge     Code = "request_too_large"       // an addition to the API contract, which allows further codes
	CodeRequestBudget       Code = "request_budget_exceeded" // an addition to the API contract, which allows further codes
	CodeIdempotencyRequired Code = "idempotency_key_required"
	CodeIdempotencyReuse    Code = "idempotency_key_reuse"
	CodeIdempotencyInFlight Code = "idempotency_key_in_flight"
	CodeInvalidCursor       Code = "invalid_cursor"
	CodeInvalidFilter       Code = "invalid_filter_value"
	CodeVoiceBackend        Code = "voice_backend_unavailable"
)

// Codes of requests about calls.
const (
	CodeDialQueueFull         Code = "dial_queue_full"
	CodeTrunkNotFound         Code = "trunk_not_found"
	CodeSubgroupNotFound      Code = "subgroup_not_found"
	CodeAgentNotInSubgroup    Code = "agent_not_in_subgroup"
	CodeAgentSubgroupAmbig    Code = "agent_subgroup_ambiguous"
	CodeCallerNumberDenied    Code = "caller_number_not_allowed"
	CodeCallerNumberGrant     Code = "caller_number_outside_grant_pool"
	CodeDestinationInvalid    Code = "destination_number_invalid"
	CodeDestinationNotAllowed Code = "destination_not_allowed"
	CodeSubgroupConcurrency   Code = "subgroup_concurrency_limit"
	CodeSubgroupRate          Code = "subgroup_rate_limit"
	CodeOrganizationLimit     Code = "organization_daily_limit"     // an addition to the API contract
	CodeOrganizationBudget    Code = "organization_budget_exceeded" // an addition to the API contract
	CodeCampaignBudget        Code = "campaign_budget_exceeded"     // appears only in limited_by of a campaign
	CodeRingDurationInvalid   Code = "ring_duration_invalid"
	CodeAgentNotPublished     Code = "agent_not_published"
	CodeAgentNotFound         Code = "agent_not_found" // only for web calls
	CodeAgentDispatch         Code = "agent_dispatch_failed"
	CodeDialFailed            Code = "dial_failed"
	CodeCallNotFound          Code = "call_not_found"
	// Codes for browsers that join a web call. Requests under /v1 do not get them.
	CodeTicketInvalid Code = "token_invalid"
	CodeTicketExpired Code = "token_expired"
	CodeTicketUsed    Code = "token_used"
	CodeCallOver      Code = "call_ended"
)

// Codes of requests about campaigns and imports.
const (
	CodeCampaignNotFound       Code = "campaign_not_found"
	CodeImportNotFound         Code = "import_not_found"
	CodeLaunchBlocked          Code = "launch_blocked"
	CodeCampaignTransition     Code = "campaign_transition_invalid"
	CodeCampaignClosed         Code = "campaign_closed"
	CodeMarketNotInstalled     Code = "market_package_not_installed"
	CodeDNCWithoutUpload       Code = "dnc_decision_without_upload"
	CodeDNCScreenRequired      Code = "dnc_screen_required"
	CodeCampaignAgentUnknown   Code = "campaign_agent_unknown"
	CodeCampaignWindow         Code = "campaign_window_invalid"
	CodeCampaignTimezone       Code = "campaign_timezone_unknown"
	CodeCampaignClassification Code = "campaign_classification_invalid"
	CodeCampaignSpec           Code = "campaign_spec_invalid"
	CodeOpenEndRequired        Code = "campaign_open_ends_at_required"
	CodeOpenEndTooFar          Code = "campaign_open_ends_at_too_far"
	CodeRouteUnresolved        Code = "dialing_route_unresolved"
	CodeRouteAmbiguous         Code = "dialing_route_ambiguous"
	CodeBindingIncomplete      Code = "dialing_binding_incomplete"
	CodeHoursWider             Code = "working_hours_wider_than_law"
	CodeAttestationImport      Code = "attestation_import_id_required"
	CodeAttestation            Code = "attestation_invalid"
	CodeDNCDecision            Code = "dnc_decision_invalid"
	CodeContactRows            Code = "contact_rows_rejected"
	CodeReportFormat           Code = "report_format_invalid"
	CodeReportFilter           Code = "report_filter_invalid"
	CodeCallsRequired          Code = "calls_required"
	CodeCallsTooMany           Code = "calls_batch_too_large"
	CodeCallsRejected          Code = "calls_rejected"
	CodeCallsDNC               Code = "calls_dnc_matched"
	CodeAddressesRequired      Code = "addresses_required"
	CodeAddressesTooMany       Code = "addresses_too_many"
	CodeContactStorage         Code = "contact_file_storage_unavailable"
)
