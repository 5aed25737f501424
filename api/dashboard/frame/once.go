package frame

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

// outcome is what is kept of what came of a form that does something once.
type outcome struct {
	To, Say string
	Wrong   bool
}

// Kept is what a form that comes again is answered.
func (d Done) Kept() idempotency.Answer {
	body, _ := json.Marshal(outcome{d.To, d.Say, d.Wrong}) // of texts alone
	return idempotency.Answer{Status: http.StatusSeeOther, Body: body}
}

// Repeated is what came of a form that was sent before.
func Repeated(a idempotency.Answer) (Done, error) {
	var o outcome
	if err := json.Unmarshal(a.Body, &o); err != nil {
		return Done{}, fmt.Errorf("what came of a form: %w", err)
	}
	return Done{To: o.To, Say: o.Say, Wrong: o.Wrong}, nil
}

// Begin takes the key of the form that was sent, or returns what came of it before. Where
// it has the key it is kept until end is called: with the error that there was the key is
// free again, and that error comes back.
func (r *Request) Begin(what ...any) (slot *idempotency.Slot, came *idempotency.Answer, end func(error) error, err error) {
	scope, key, err := r.OnceKey()
	if err != nil {
		return nil, nil, nil, err
	}
	keys := idempotency.Keys{Pool: r.frame.DB.Pool}
	if slot, came, err = keys.Begin(r.Context(), scope, key, []byte(r.digest(what))); err != nil || came != nil {
		return nil, came, nil, err
	}
	stop := keys.Keep(context.WithoutCancel(r.Context()), slot)
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

// DoOnce does what a form asks for once. One that comes again is answered as the first
// was, where it says the same; what was refused may be sent again.
func (r *Request) DoOnce(do func() (Done, error), what ...any) (Done, error) {
	slot, came, end, err := r.Begin(what...)
	if err != nil {
		return Done{}, err
	}
	if came != nil {
		return Repeated(*came)
	}
	done, err := do()
	if err = end(err); err != nil {
		return done, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*time.Second)
	defer cancel()
	if err := slot.Settle(ctx, r.DB(), done.Kept()); err != nil { // it is done all the same
		r.frame.Log.WarnContext(ctx, "what came of a form is not remembered", "error", err.Error())
	}
	return done, nil
}

// Sum is short for what a file says that was sent, "" where none was.
func (r *Request) Sum(name string) (string, error) {
	from, _, err := r.HTTP.FormFile(name)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read a file: %w", err)
	}
	defer from.Close()
	sum := sha256.New()
	if _, err = io.Copy(sum, from); err != nil {
		return "", fmt.Errorf("read a file: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
