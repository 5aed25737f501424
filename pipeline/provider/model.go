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

var errSlow = errors.New("nothing came in time")

// Model returns what an engine asks for. A model that fails or says nothing in
// time is replaced by the fallback; one that fails once it has begun to speak is
// not, for nothing is to be said twice.
func (g *Guards) Model(all map[string]pipeline.Model, e pipeline.Engine) pipeline.Model {
	first, second := ends(e)
	m := model{first: brain{g.of("llm", first.Provider), all[first.Provider], first.Model}}
	if second != nil {
		m.second = &brain{g.of("llm", second.Provider), all[second.Provider], second.Model}
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
	second *brain // nil: there is none
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
		began, err := m.first.ask(ctx, p, firstToken, yield)
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
		stop = time.AfterFunc(limit, func() { cancel(errSlow) }).Stop
	}
	defer stop()
	for d, err := range b.Reply(ctx, p) {
		if err == nil && !began && (d.Text != "" || len(d.Calls) > 0) {
			if began = stop(); !began {
				err = errSlow // it came at the last moment, and the answer is cut off already
			} else {
				visit.note(Alive)
			}
		}
		if err != nil {
			if !began && errors.Is(context.Cause(ctx), errSlow) {
				err = fmt.Errorf("%s: %w", b.name, errSlow)
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
