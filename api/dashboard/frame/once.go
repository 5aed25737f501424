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

// DoOnce does what a form asks for once. One that comes again is answered as the first
// was, where it says the same; what was refused may be sent again.
func (r *Request) DoOnce(do func() (Done, error), what ...any) (Done, error) {
	scope, key, err := r.OnceKey()
	if err != nil {
		return Done{}, err
	}
	keys, sum := idempotency.Keys{Pool: r.frame.DB.Pool}, r.digest(what)
	slot, came, err := keys.Begin(r.Context(), scope, key, []byte(sum))
	if err != nil {
		return Done{}, err
	}
	if came != nil {
		return Repeated(*came)
	}
	done, err := do()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*time.Second)
	defer cancel()
	if err != nil {
		return done, errors.Join(err, keys.Release(ctx, slot))
	}
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
