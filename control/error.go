package control

import (
	"errors"
	"time"
)

// Error is a refusal whose message may be shown to the client.
type Error struct {
	Code    Code
	Message string
	// RetryAfter suggests when to retry; 0 means no suggestion.
	RetryAfter time.Duration
}

// Refuse returns an Error.
func Refuse(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// CodeOf returns the code of a refusal; CodeInternal for other errors.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// ErrFenced is returned by a write of a node whose lease has lapsed and was settled by another node.
var ErrFenced = errors.New("the attempt belongs to another node")

// ErrStopped is returned if the call's campaign was paused or ended after the claim. Nothing was sent.
var ErrStopped = errors.New("the campaign of the call is not running")

// HaltError tells why an attempt must not be dialed.
type HaltError struct{ Reason Reason }

// Error implements error.
func (h *HaltError) Error() string { return "the call must not be dialed: " + string(h.Reason) }
