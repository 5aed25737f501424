package provider

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// openLimit is how long a provider may take to be opened where there is a
// second one.
const openLimit = 1500 * time.Millisecond

// Recognizer returns what an engine asks for, for one call. A stream that
// cannot be opened is opened at the fallback, and so is the one after a stream
// that broke.
func (g *Guards) Recognizer(all map[string]pipeline.Recognizer, e pipeline.Engine) pipeline.Recognizer {
	first, second := ends(e)
	r := &recognizer{first: ear{g.of("asr", first.Provider), all[first.Provider], first.Model}}
	if second != nil {
		r.second = &ear{g.of("asr", second.Provider), all[second.Provider], second.Model}
	}
	return r
}

// An ear is one recognizer and its guard.
type ear struct {
	*guard
	pipeline.Recognizer
	model string
}

type recognizer struct {
	first   ear
	second  *ear        // nil: there is none
	swapped atomic.Bool // the second one is asked first
}

// Recognize implements pipeline.Recognizer.
func (r *recognizer) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	if r.second == nil {
		return r.open(ctx, r.first, s)
	}
	one, two := r.first, *r.second
	if r.swapped.Load() {
		one, two = two, one
	}
	short, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	rec, err := r.open(short, one, s)
	if err == nil || ctx.Err() != nil {
		return rec, err
	}
	rec, again := r.open(ctx, two, s)
	if again != nil {
		return nil, errors.Join(err, again)
	}
	return rec, nil
}

func (r *recognizer) open(ctx context.Context, e ear, s pipeline.Stream) (pipeline.Recognition, error) {
	leave, err := e.enter()
	if err != nil {
		return nil, err
	}
	s.Model = e.model
	rec, err := e.Recognize(ctx, s)
	if err != nil {
		leave(err)
		return nil, err
	}
	return &recognition{Recognition: rec, done: func(err error) {
		if leave(err); err != nil {
			r.swapped.Store(e.guard == r.first.guard) // the next is the other's
		}
	}}, nil
}

// recognition is a stream whose end is noted.
type recognition struct {
	pipeline.Recognition
	once sync.Once
	done func(error)
}

// Close implements pipeline.Recognition.
func (r *recognition) Close() error {
	err := r.Recognition.Close()
	r.once.Do(func() { r.done(err) })
	return err
}
