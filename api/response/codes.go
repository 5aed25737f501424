package response

import (
	"net/http"

	"github.com/parley-voice/parley/control"
)

// statuses maps the error codes of the API to HTTP statuses.
var statuses = map[control.Code]int{ //nolint:gochecknoglobals // read-only table
	control.CodeCallerNumberDenied: 400, control.CodeCallerNumberGrant: 400,
	control.CodeDestinationInvalid: 400, control.CodeRingDurationInvalid: 400,
	control.CodeInvalidFilter: 400, control.CodeInvalidCursor: 400,

	control.CodeKeyRequired: 401, control.CodeKeyUnknown: 401, control.CodeKeyRevoked: 401, control.CodeKeyExpired: 401,
	control.CodeTicketInvalid: 401, control.CodeTicketExpired: 401, control.CodeTicketUsed: 401,

	control.CodeAgentNotInSubgroup: 403, control.CodeDestinationNotAllowed: 403, control.CodePrivilegedKey: 403,
	control.CodeRootOrgKey: 403, control.CodeKeyScope: 403,

	control.CodeTrunkNotFound: 404, control.CodeSubgroupNotFound: 404, control.CodeCallNotFound: 404, control.CodeCampaignNotFound: 404,
	control.CodeImportNotFound: 404, control.CodeAgentNotFound: 404,

	control.CodeAgentSubgroupAmbig: 409, control.CodeAgentNotPublished: 409,
	control.CodeLaunchBlocked: 409, control.CodeCampaignTransition: 409,
	control.CodeCampaignClosed: 409, control.CodeMarketNotInstalled: 409,
	control.CodeIdempotencyInFlight: 409, control.CodeDNCWithoutUpload: 409,
	control.CodeDNCScreenRequired: 409,

	control.CodeCallOver: 410,

	control.CodeRequestTooLarge: 413,

	control.CodeInvalidRequest: 422, control.CodeIdempotencyRequired: 422,
	control.CodeIdempotencyReuse: 422, control.CodeCampaignAgentUnknown: 422,
	control.CodeCampaignWindow: 422, control.CodeCampaignTimezone: 422, control.CodeCampaignClassification: 422, control.CodeCampaignSpec: 422,
	control.CodeOpenEndRequired: 422, control.CodeOpenEndTooFar: 422, control.CodeRouteUnresolved: 422, control.CodeRouteAmbiguous: 422,
	control.CodeBindingIncomplete: 422, control.CodeHoursWider: 422, control.CodeAttestationImport: 422, control.CodeAttestation: 422,
	control.CodeDNCDecision: 422, control.CodeContactRows: 422, control.CodeReportFormat: 422, control.CodeReportFilter: 422,
	control.CodeCallsRequired: 422, control.CodeCallsTooMany: 422, control.CodeCallsRejected: 422, control.CodeCallsDNC: 422,
	control.CodeAddressesRequired: 422, control.CodeAddressesTooMany: 422,

	control.CodeKeyRateLimit: 429, control.CodeDialQueueFull: 429, control.CodeSubgroupConcurrency: 429, control.CodeSubgroupRate: 429,
	control.CodeOrganizationLimit: 429, control.CodeOrganizationBudget: 429, control.CodeCampaignBudget: 429, control.CodeRequestBudget: 429,

	control.CodeInternal: 500,

	control.CodeDialFailed: 502, control.CodeContactStorage: 502,

	control.CodeVoiceBackend: 503, control.CodeAgentDispatch: 503,
}

// statusOf returns the status of a code, 500 for unknown ones.
func statusOf(code control.Code) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// typeOf returns the error type of a status; other client errors are invalid requests.
func typeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusConflict:
		return "conflict_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "service_unavailable_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}
