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

// Errors of providers that are not asked, or no longer.
var (
	ErrBusy = errors.New("as many are asked at a time as may be")
	ErrOpen = errors.New("left alone after it failed")
	// ErrSlow is the error of one that was asked and did not begin in time.
	ErrSlow = errors.New("nothing came in time")
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
	return g.keep(seam+" "+name, func() *guard { return &guard{name: name, room: &room{limit: g.Limits[name]}} })
}

// aside is the guard of a provider for work beside the calls: it takes of the
// same room, and leaves the provider alone for failures of its own.
func (g *Guards) aside(seam, name string) *guard {
	calls := g.of(seam, name)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keep(aside+" "+seam+" "+name, func() *guard { return &guard{name: name, room: calls.room} })
}

// aside is what the keys of guards begin with of work beside the calls.
const aside = "aside"

// keep returns the guard of a key, made where there is none. The caller holds mu.
func (g *Guards) keep(key string, build func() *guard) *guard {
	if g.guards == nil {
		g.guards = map[string]*guard{}
	}
	if g.guards[key] == nil {
		g.guards[key] = build()
	}
	return g.guards[key]
}

// A room is what a provider may be asked at a time.
type room struct {
	limit int // 0: none

	mu    sync.Mutex
	asked int // at this time
}

func (r *room) take() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit > 0 && r.asked >= r.limit {
		return false
	}
	r.asked++
	return true
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked--
}

// A guard watches one provider.
type guard struct {
	name string
	room *room

	mu      sync.Mutex
	breaker Breaker
}

// A visit is one asking of a provider.
type visit struct {
	guard *guard
	token *Token
	once  sync.Once
}

// enter asks to ask the provider. The visit is to be ended.
func (g *guard) enter() (*visit, error) {
	if !g.room.take() {
		return nil, fmt.Errorf("%s: %w", g.name, ErrBusy)
	}
	g.mu.Lock()
	token := g.breaker.Allow(time.Now())
	g.mu.Unlock()
	if token == nil {
		g.room.leave()
		return nil, fmt.Errorf("%s: %w", g.name, ErrOpen)
	}
	return &visit{guard: g, token: token}, nil
}

// note tells something of the visit before its end.
func (v *visit) note(e Ending) {
	v.guard.mu.Lock()
	defer v.guard.mu.Unlock()
	v.guard.breaker.Done(v.token, e, time.Now(), 0)
}

// leave ends the visit: the provider has answered or broken. Later calls do
// nothing.
func (v *visit) leave(err error) {
	v.once.Do(func() {
		v.guard.room.leave()
		v.guard.mu.Lock()
		defer v.guard.mu.Unlock()
		ending, alone := judge(err)
		v.guard.breaker.Done(v.token, ending, time.Now(), alone)
	})
}

// judge tells what an error says about a provider. Who asks for what there is
// not, or is given an answer that is of no use, has nobody else kept from asking.
func judge(err error) (e Ending, alone time.Duration) {
	var refused *pipeline.RefusedError
	switch {
	case err == nil:
		return Worked, 0
	case errors.Is(err, context.Canceled), errors.Is(err, pipeline.ErrUseless):
		return Abandoned, 0
	case !errors.As(err, &refused):
		return Failed, 0
	case refused.OfAsker():
		return Abandoned, 0
	}
	return Failed, refused.RetryAfter
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
