package control

import (
	"errors"
	"time"
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

// ErrStopped is returned where the campaign of a call was paused, or is over, since
// the call was taken: nothing has left.
var ErrStopped = errors.New("the call's campaign does not run any more")

// A HaltError is why an attempt that was about to dial must not.
type HaltError struct{ Reason Reason }

// Error implements error.
func (h *HaltError) Error() string { return "the call must not be dialled: " + string(h.Reason) }
