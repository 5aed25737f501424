package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// Errors of providers that are not asked.
var (
	ErrBusy = errors.New("as many are asked at a time as may be")
	ErrOpen = errors.New("left alone after it failed")
)

// Guards are the guards of all providers, by what they do and their name. The
// zero value is ready. One serves all calls.
type Guards struct {
	// Limits is how many streams, answers or utterances a provider may have at
	// a time, by its name; none is no limit. It is set once.
	Limits map[string]int

	mu     sync.Mutex
	guards map[string]*guard
}

func (g *Guards) of(seam, name string) *guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.guards == nil {
		g.guards = map[string]*guard{}
	}
	key := seam + " " + name
	if g.guards[key] == nil {
		g.guards[key] = &guard{name: name, limit: g.Limits[name]}
	}
	return g.guards[key]
}

// A guard watches one provider.
type guard struct {
	name  string
	limit int // 0: none

	mu      sync.Mutex
	asked   int // at this time
	breaker Breaker
}

// enter asks to ask the provider. The returned function is to be called once
// it has answered or broken; later calls do nothing.
func (g *guard) enter() (leave func(error), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limit > 0 && g.asked >= g.limit {
		return nil, fmt.Errorf("%s: %w", g.name, ErrBusy)
	}
	if !g.breaker.Allow(time.Now()) {
		return nil, fmt.Errorf("%s: %w", g.name, ErrOpen)
	}
	g.asked++
	var once sync.Once
	return func(err error) { once.Do(func() { g.leave(err) }) }, nil
}

func (g *guard) leave(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked--
	var refused *pipeline.RefusedError
	var alone time.Duration
	ending := Failed
	switch {
	case err == nil:
		ending = Worked
	case errors.Is(err, context.Canceled):
		ending = Abandoned
	case errors.As(err, &refused):
		alone = refused.RetryAfter
	}
	g.breaker.Done(ending, time.Now(), alone)
}

// Check says what is wrong with an engine, if anything: it and its fallback
// must name providers that there are, and a fallback has none of its own. at is
// where the engine stands, such as "speech.asr".
func Check[T any](at string, e pipeline.Engine, all map[string]T) error {
	err := known(at+".provider", e.Provider, all)
	if f := e.Fallback; f != nil {
		err = errors.Join(err, known(at+".fallback.provider", f.Provider, all))
		if f.Fallback != nil {
			err = errors.Join(err, fmt.Errorf("%s.fallback.fallback: a fallback has none of its own", at))
		}
	}
	return err
}

func known[T any](key, name string, all map[string]T) error {
	if _, ok := all[name]; ok {
		return nil
	}
	return fmt.Errorf("%s: %q is not a provider that is set up; accepted: %s",
		key, name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// ends returns the engine's two ends: itself, and its fallback; nil for none.
func ends(e pipeline.Engine) (first pipeline.Engine, second *pipeline.Engine) {
	second, e.Fallback = e.Fallback, nil
	return e, second
}
