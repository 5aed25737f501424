package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// maxFirstToken bounds the time to the first token if there is a fallback.
const maxFirstToken = 1500 * time.Millisecond

// maxReasoningToken replaces maxFirstToken for a model that the agent lets reason.
const maxReasoningToken = 6 * time.Second

// maxBackgroundToken replaces maxFirstToken for background work, where the first delta may be a
// tool call with the whole answer.
const maxBackgroundToken = 30 * time.Second

// Model returns the guarded model of an engine. The fallback replaces a model that fails or is late before its first
// token. A later failure is returned, because the fallback would repeat the words.
func (g *Guards) Model(c *Clients, e pipeline.Engine, meter *pipeline.UsageMeter) pipeline.Model {
	return newModel(g.of, c, e, maxFirstToken, meter)
}

// BackgroundModel returns the guarded model of an engine for deferrable work outside of
// calls. Its failures do not open the breakers of calls, and answers may start late.
func (g *Guards) BackgroundModel(c *Clients, e pipeline.Engine, meter *pipeline.UsageMeter) pipeline.Model {
	return newModel(g.background, c, e, maxBackgroundToken, meter)
}

func newModel(
	guard func(seam, id string) *guard, c *Clients, e pipeline.Engine, limit time.Duration, meter *pipeline.UsageMeter,
) pipeline.Model {
	m := model{limit: limit}
	for _, one := range c.resolveChain("llm", e) {
		m.chain = append(m.chain, guardedModel{guard("llm", one.EndpointID()), c.of(one.OrgID).Models[one.Provider], one, meter})
	}
	return m
}

type guardedModel struct {
	*guard
	pipeline.Model
	engine pipeline.Engine
	meter  *pipeline.UsageMeter // nil if usage is not measured
}

// model is a chain of models. Each is the fallback of the one before it.
type model struct {
	chain []guardedModel
	limit time.Duration // time to the first token for each model but the last; 0 for no limit
}

// Reply implements pipeline.Model.
func (m model) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		var errs []error
		for n, one := range m.chain {
			limit := m.limit
			if one.reasons() {
				limit = max(limit, maxReasoningToken)
			}
			if n == len(m.chain)-1 {
				limit = 0
			}
			began, err := one.ask(ctx, p, limit, yield)
			if err == nil {
				return
			}
			errs = append(errs, err)
			if began || ctx.Err() != nil {
				break
			}
		}
		yield(pipeline.Delta{}, errors.Join(errs...))
	}
}

// ask forwards an answer. It returns whether any of it was forwarded, and the error that
// ended it. If limit is not 0, the first token must arrive within it.
func (b guardedModel) ask(
	ctx context.Context,
	p pipeline.Prompt,
	limit time.Duration,
	yield func(pipeline.Delta, error) bool,
) (began bool, err error) {
	visit, err := b.begin(ctx)
	if err != nil {
		return false, err
	}
	p.Model, p.Options = b.engine.Model, b.engine.Options
	p.MaxTokens = cmp.Or(p.MaxTokens, p.Options.MaxTokens)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := func() bool { return true }
	if limit > 0 {
		stop = time.AfterFunc(limit, func() { cancel(ErrSlow) }).Stop
	}
	defer stop()
	usage := answerUsage{prompt: p}
	defer func() { usage.report(b.meter, b.engine) }()
	for d, err := range b.Reply(ctx, p) {
		if ctx.Err() == nil {
			usage.add(d, err)
		}
		if err == nil && !began && (d.Text != "" || len(d.Calls) > 0) {
			if began = stop(); !began {
				err = ErrSlow // the token came while the request was being canceled
			} else {
				visit.note(Responding)
			}
		}
		if err != nil {
			if !began && errors.Is(context.Cause(ctx), ErrSlow) {
				err = fmt.Errorf("%s: %w", b.name, ErrSlow)
				if b.reasons() {
					visit.finish(context.Canceled) // slow by the agent's choice, not by the provider's fault
				}
			}
			visit.finish(err) // no effect if the request has finished
			return began, err
		}
		if !yield(d, nil) {
			visit.finish(context.Canceled)
			return true, nil
		}
	}
	visit.finish(ctx.Err())
	return began, nil
}

// reasons reports whether the agent lets the model reason before it answers.
func (b guardedModel) reasons() bool {
	return !slices.Contains([]string{"", "none", "minimal"}, b.engine.ReasoningEffort)
}
