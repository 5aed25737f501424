package control

import (
	"errors"
	"time"
)

// Error is a refusal. Its message may be shown to the client.
type Error struct {
	Code    Code
	Message string
	// RetryAfter is the time after which a retry makes sense; 0 means no suggestion.
	RetryAfter time.Duration
}

// Refuse returns an Error with this code and message.
func Refuse(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// CodeOf returns the code of a refusal, or CodeInternal for any other error.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// ErrFenced is returned for a write of a node whose lease expired, if another node has settled the attempt.
var ErrFenced = errors.New("the attempt belongs to another node")

// ErrStopped is returned if the call's campaign was paused or ended after the call was claimed. Nothing was sent.
var ErrStopped = errors.New("the campaign of the call is not running")

// HaltError says why an attempt must not be dialed.
type HaltError struct{ Reason Reason }

// Error implements error.
func (h *HaltError) Error() string { return "the call must not be dialed: " + string(h.Reason) }
