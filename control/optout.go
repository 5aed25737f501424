package control

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// OptOutOptions are additional ways to opt out. A spoken request in English always works.
type OptOutOptions struct {
	Key     string   `json:"key,omitempty"`     // the telephone key that the disclosure names
	Phrases []string `json:"phrases,omitempty"` // phrases in other languages
}

// OptOut is a person's request that an organization never call the number again.
type OptOut struct {
	OrgID, Number string // Number has digits only
	CallID        string // the call in which the request was made
	Source        pipeline.OptOutSource
	Words         string // what the callee said; empty if a key was pressed
	At            time.Time
}

// OptOutAnalysis is the Source of an opt-out that was found by the analysis of a call.
const OptOutAnalysis = pipeline.OptOutAnalysis

// OptOutStore stores opt-outs. OptOut returns only when no call of the organization can reach the number any more. It
// is idempotent.
type OptOutStore interface {
	OptOut(ctx context.Context, o OptOut) error
}

// optOuts returns the opt-out settings of a claim. Opt-outs are stored in r.OptOuts, if it is set.
func (r *Runner) optOuts(log *slog.Logger, c *Claim) pipeline.OptOutConfig {
	o := c.Session.OptOuts
	if r.OptOuts == nil || c.Call.Type == Web { // a web user was not called, so there is nothing to opt out of
		return o
	}
	o.Store = func(ctx context.Context, asked pipeline.OptOut) error {
		return r.writeWithRetry(ctx, func(ctx context.Context) error {
			err := r.OptOuts.OptOut(
				ctx,
				OptOut{OrgID: c.Call.OrgID, Number: c.Call.To, CallID: c.Call.ID, Source: asked.Source, Words: asked.Text, At: asked.At},
			)
			if err != nil {
				log.WarnContext(ctx, "failed to store an opt-out; retrying", "err", err)
			}
			return err
		})
	}
	return o
}

// writeWithRetry retries write for up to finishTimeout, even after ctx ended.
func (r *Runner) writeWithRetry(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.finishTimeout())
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := write(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
