package ui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/parley-voice/parley/control/idempotency"
)

type outcome struct {
	To, Say string
	Wrong   bool
}

// Kept returns the form in which a result is stored for repeated submissions.
func (d Result) Kept() idempotency.Answer {
	body, _ := json.Marshal(outcome{d.To, d.Notice, d.Failed}) // encoding texts never fails
	return idempotency.Answer{Status: http.StatusSeeOther, Body: body}
}

// RepeatedResult returns the result of the first submission.
func RepeatedResult(a idempotency.Answer) (Result, error) {
	var o outcome
	if err := json.Unmarshal(a.Body, &o); err != nil {
		return Result{}, fmt.Errorf("decode the stored result of a submitted form: %w", err)
	}
	return Result{To: o.To, Notice: o.Say, Failed: o.Wrong}, nil
}

// Begin reserves the idempotency key of the form, or returns the result of an earlier
// submission. The caller must call end: with an error it frees the key and returns
// that error.
func (r *Request) Begin(what ...any) (slot *idempotency.Slot, came *idempotency.Answer, end func(error) error, err error) {
	scope, key, err := r.OnceKey()
	if err != nil {
		return nil, nil, nil, err
	}
	keys := idempotency.Keys{Pool: r.frame.DB.Pool}
	if slot, came, err = keys.Begin(r.Context(), scope, key, []byte(r.digest(what))); err != nil || came != nil {
		return nil, came, nil, err
	}
	stop := keys.KeepAlive(context.WithoutCancel(r.Context()), slot)
	return slot, nil, func(err error) error {
		stop()
		if err == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*time.Second)
		defer cancel()
		return errors.Join(err, keys.Release(ctx, slot))
	}, nil
}

// DoOnce runs do once per form. An identical repetition gets the first result; a
// rejected form may be sent again.
func (r *Request) DoOnce(do func() (Result, error), what ...any) (Result, error) {
	slot, came, end, err := r.Begin(what...)
	if err != nil {
		return Result{}, err
	}
	if came != nil {
		return RepeatedResult(*came)
	}
	done, err := do()
	if err = end(err); err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*time.Second)
	defer cancel()
	if err := slot.Settle(ctx, r.DB(), done.Kept()); err != nil { // the change itself has been made
		r.frame.Log.WarnContext(ctx, "failed to store the result of a submitted form", "error", err.Error())
	}
	return done, nil
}

// Sum returns the SHA-256 of an uploaded file in hex; "" without a file.
func (r *Request) Sum(name string) (string, error) {
	from, _, err := r.HTTP.FormFile(name)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read an upload: %w", err)
	}
	defer from.Close()
	sum := sha256.New()
	if _, err = io.Copy(sum, from); err != nil {
		return "", fmt.Errorf("read an upload: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
