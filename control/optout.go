package control

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// OptOutWays are how the party of a call has itself not called again, beside
// saying so in English.
type OptOutWays struct {
	Key     string   `json:"key,omitempty"`     // that the disclosure names
	Phrases []string `json:"phrases,omitempty"` // in other languages
}

// An OptOut is that somebody asked an organization not to be called again.
type OptOut struct {
	OrgID, Number string // digits
	CallID        string // in which it was asked
	Source        pipeline.OptOutSource
	Said          string // the words that asked, where there were any
	At            time.Time
}

// OptOutAnalysis is the source of what the analysis of a call says.
const OptOutAnalysis = pipeline.OptOutAnalysis

// OptOuts keeps who asked not to be called again. It returns once nobody of the
// organization calls the number any more, whatever breaks. To keep it again
// changes nothing.
type OptOuts interface {
	OptOut(ctx context.Context, o OptOut) error
}

// optOuts has the party of a claim listened to, where somebody keeps what it asks.
func (r *Runner) optOuts(log *slog.Logger, c *Claim) pipeline.OptOuts {
	o := c.Brief.OptOuts
	if r.OptOuts == nil || c.Call.Type == Web { // who joins by a browser was not called
		return o
	}
	o.Keep = func(ctx context.Context, asked pipeline.OptOut) error {
		return r.persist(ctx, func(ctx context.Context) error {
			err := r.OptOuts.OptOut(ctx, OptOut{OrgID: c.Call.OrgID, Number: c.Call.To, CallID: c.Call.ID, Source: asked.Source, Said: asked.Said, At: asked.At})
			if err != nil {
				log.WarnContext(ctx, "an opt-out is not written yet", "err", err)
			}
			return err
		})
	}
	return o
}

// persist tries for long what must be written.
func (r *Runner) persist(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.finishFor())
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
