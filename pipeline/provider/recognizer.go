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
	visit, err := e.enter()
	if err != nil {
		return nil, err
	}
	s.Model = e.model
	rec, err := e.Recognize(ctx, s)
	if err != nil {
		visit.leave(err)
		return nil, err
	}
	visit.note(Alive)
	out := &recognition{Recognition: rec, visit: visit, results: make(chan pipeline.Result), stop: make(chan struct{}), broke: func() {
		r.swapped.Store(e.guard == r.first.guard) // the next is the other's
	}}
	out.wg.Go(out.pass)
	return out, nil
}

// recognition is a stream whose signs of life and end are noted. Its goroutine
// passes results on; Close waits for it.
type recognition struct {
	pipeline.Recognition
	visit   *visit
	broke   func()
	results chan pipeline.Result
	stop    chan struct{}
	wg      sync.WaitGroup
	once    sync.Once
	heard   bool // the provider told something
}

// Reticent implements pipeline.Reticent.
func (r *recognition) Reticent() bool {
	x, ok := r.Recognition.(pipeline.Reticent)
	return ok && x.Reticent()
}

// Results implements pipeline.Recognition.
func (r *recognition) Results() <-chan pipeline.Result { return r.results }

// pass passes results on, of which the first shows that the provider works.
func (r *recognition) pass() {
	defer close(r.results)
	for {
		var res pipeline.Result
		select {
		case next, more := <-r.Recognition.Results():
			if !more {
				return
			}
			res = next
		case <-r.stop: // whether or not the provider closes what it tells
			return
		}
		if !r.heard && !res.Unanswered {
			r.heard = true
			r.visit.note(Worked)
		}
		select {
		case r.results <- res:
		case <-r.stop:
			return
		}
	}
}

// Close implements pipeline.Recognition.
func (r *recognition) Close() error {
	err := r.Recognition.Close()
	r.once.Do(func() {
		close(r.stop)
		r.wg.Wait()
		switch {
		case err != nil:
			r.visit.leave(err)
			r.broke()
		case r.heard:
			r.visit.leave(nil)
		default: // nothing was ever said
			r.visit.leave(context.Canceled)
		}
	})
	return err
}
