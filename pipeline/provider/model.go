package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// firstToken is how long a model may take to its first word where there is a
// second one.
const firstToken = 1500 * time.Millisecond

// asideToken is the same beside the calls, where the first that comes may be a
// tool call with all of the answer.
const asideToken = 30 * time.Second

// Model returns what an engine asks for. A model that fails or says nothing in
// time is replaced by the fallback; one that fails once it has begun to speak is
// not, for nothing is to be said twice.
func (g *Guards) Model(all map[string]pipeline.Model, e pipeline.Engine) pipeline.Model {
	return made(g.of, all, e, firstToken)
}

// Aside returns what an engine asks for, for work beside the calls that can be
// done later: what fails of it closes the provider off for no call, and an
// answer may begin late.
func (g *Guards) Aside(all map[string]pipeline.Model, e pipeline.Engine) pipeline.Model {
	return made(g.aside, all, e, asideToken)
}

func made(guard func(seam, name string) *guard, all map[string]pipeline.Model, e pipeline.Engine, limit time.Duration) pipeline.Model {
	first, second := ends(e)
	m := model{first: brain{guard("llm", first.Provider), all[first.Provider], first.Model}, limit: limit}
	if second != nil {
		m.second = &brain{guard("llm", second.Provider), all[second.Provider], second.Model}
	}
	return m
}

// A brain is one model and its guard.
type brain struct {
	*guard
	pipeline.Model
	model string
}

type model struct {
	first  brain
	second *brain        // nil: there is none
	limit  time.Duration // of the first one, to its first word
}

// Reply implements pipeline.Model.
func (m model) Reply(ctx context.Context, p pipeline.Prompt) iter.Seq2[pipeline.Delta, error] {
	return func(yield func(pipeline.Delta, error) bool) {
		if m.second == nil {
			if _, err := m.first.ask(ctx, p, 0, yield); err != nil {
				yield(pipeline.Delta{}, err)
			}
			return
		}
		began, err := m.first.ask(ctx, p, m.limit, yield)
		if err != nil && !began && ctx.Err() == nil {
			var again error
			if _, again = m.second.ask(ctx, p, 0, yield); again == nil {
				return
			}
			err = errors.Join(err, again)
		}
		if err != nil {
			yield(pipeline.Delta{}, err)
		}
	}
}

// ask passes an answer on. It returns whether any of it was, and the error that
// ended it. The first of it must come within limit, if that is not 0.
func (b brain) ask(ctx context.Context, p pipeline.Prompt, limit time.Duration, yield func(pipeline.Delta, error) bool) (began bool, err error) {
	visit, err := b.enter()
	if err != nil {
		return false, err
	}
	p.Model = b.model
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := func() bool { return true }
	if limit > 0 {
		stop = time.AfterFunc(limit, func() { cancel(ErrSlow) }).Stop
	}
	defer stop()
	for d, err := range b.Reply(ctx, p) {
		if err == nil && !began && (d.Text != "" || len(d.Calls) > 0) {
			if began = stop(); !began {
				err = ErrSlow // it came at the last moment, and the answer is cut off already
			} else {
				visit.note(Alive)
			}
		}
		if err != nil {
			if !began && errors.Is(context.Cause(ctx), ErrSlow) {
				err = fmt.Errorf("%s: %w", b.name, ErrSlow)
			}
			visit.leave(err)
			return began, err
		}
		if !yield(d, nil) {
			visit.leave(context.Canceled)
			return true, nil
		}
	}
	visit.leave(ctx.Err())
	return began, nil
}
