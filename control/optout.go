package control

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// OptOutOptions are ways to opt out in addition to saying so in English.
type OptOutOptions struct {
	Key     string   `json:"key,omitempty"`     // the key named in the disclosure
	Phrases []string `json:"phrases,omitempty"` // in other languages
}

// OptOut is a request to an organization not to call a number again.
type OptOut struct {
	OrgID, Number string // digits
	CallID        string // the call in which it was made
	Source        pipeline.OptOutSource
	Words         string // the callee's words, if any
	At            time.Time
}

// OptOutAnalysis is the source of opt-outs found by the analysis of a call.
const OptOutAnalysis = pipeline.OptOutAnalysis

// OptOutStore stores opt-outs. OptOut returns once no call of the organization can reach
// the number any more. It is idempotent.
type OptOutStore interface {
	OptOut(ctx context.Context, o OptOut) error
}

// optOuts returns the opt-out settings of a claim; opt-outs are stored by r.OptOuts, if set.
func (r *Runner) optOuts(log *slog.Logger, c *Claim) pipeline.OptOutConfig {
	o := c.Session.OptOuts
	if r.OptOuts == nil || c.Call.Type == Web { // a browser user was not called
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

// writeWithRetry retries write for up to finishTimeout, even after ctx has ended.
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
