package control

import (
	"errors"
	"time"
)

// A Code names why a request was refused, as the API spells it.
type Code string

// Codes.
const (
	CodeInternal              Code = "internal_error"
	CodeKeyRequired           Code = "api_key_required"
	CodeKeyUnknown            Code = "api_key_unknown"
	CodeKeyRevoked            Code = "api_key_revoked"
	CodeKeyRateLimit          Code = "api_key_rate_limit_exceeded"
	CodeInvalidRequest        Code = "invalid_request"
	CodeRequestTooLarge       Code = "request_too_large"
	CodeIdempotencyReuse      Code = "idempotency_key_reuse"
	CodeIdempotencyInFlight   Code = "idempotency_key_in_flight"
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
	CodeOrganizationLimit     Code = "organization_daily_limit" // not in the contract: it allows for more
	CodeRingDurationInvalid   Code = "ring_duration_invalid"
	CodeAgentNotPublished     Code = "agent_not_published"
	CodeCampaignAgentUnknown  Code = "campaign_agent_unknown"
	CodeCallNotFound          Code = "call_not_found"
	CodeInvalidCursor         Code = "invalid_cursor"
	CodeInvalidFilter         Code = "invalid_filter_value"
	CodeVoiceBackend          Code = "voice_backend_unavailable"
)

// An Error is a refusal that its causer may read.
type Error struct {
	Code    Code
	Message string
	// RetryAfter, where positive, is when to try again.
	RetryAfter time.Duration
}

// Refuse returns an Error.
func Refuse(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// CodeOf returns the code of a refusal, and CodeInternal for any other error.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// ErrFenced is returned by a write of a node that no longer owns the attempt:
// its lease lapsed and somebody else settled it.
var ErrFenced = errors.New("the attempt belongs to someone else by now")

// A HaltError is why an attempt that was about to dial must not.
type HaltError struct{ Reason Reason }

// Error implements error.
func (h *HaltError) Error() string { return "the call must not be dialled: " + string(h.Reason) }
