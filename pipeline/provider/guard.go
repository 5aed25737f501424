package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// Errors of requests that were refused locally.
var (
	ErrBusy = errors.New("provider at its concurrency limit")
	ErrOpen = errors.New("provider paused after failures")
)

// ErrSlow is the error of a provider that did not respond in time.
const ErrSlow = pipeline.TimeoutError("no response in time")

// Guards holds the guards of all providers by kind and name. The zero value is ready to use. One Guards serves all
// calls.
type Guards struct {
	// Limits is the number of concurrent streams, replies or utterances by endpoint ID; a
	// missing entry means no limit. After the first request only SetLimits changes it.
	Limits map[string]int

	late lateness

	mu     sync.Mutex
	guards map[string]*guard
}

// SetLimits replaces the limits. Requests in progress are not interrupted.
func (g *Guards) SetLimits(limits map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Limits = limits
	for _, x := range g.guards {
		x.slots.mu.Lock()
		x.slots.limit = limits[x.id]
		x.slots.mu.Unlock()
	}
}

// Reset forgets the failures of endpoints whose settings have changed. Later failures of requests with the former
// settings do not count, but these requests still count against the limit.
func (g *Guards) Reset(ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, x := range g.guards {
		switch {
		case !slices.Contains(ids, x.id):
		case x.slots.idle():
			delete(g.guards, key) // the endpoint may be gone
		default:
			g.guards[key] = newGuard(x.id, x.slots, x.late)
		}
	}
}

// of returns the guard of an endpoint for calls.
func (g *Guards) of(seam, id string) *guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.getOrAdd(seam+" "+id, func() *guard { return newGuard(id, &slots{limit: g.Limits[id]}, &g.late) })
}

// background returns the guard for work outside of calls. It shares the concurrency limit
// with calls but has a breaker of its own.
func (g *Guards) background(seam, id string) *guard {
	calls := g.of(seam, id)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.getOrAdd(backgroundPrefix+" "+seam+" "+id, func() *guard { return newGuard(id, calls.slots, &g.late) })
}

// backgroundPrefix starts the keys of background guards.
const backgroundPrefix = "aside"

// getOrAdd returns the guard of a key and creates it if needed. The caller holds mu.
func (g *Guards) getOrAdd(key string, build func() *guard) *guard {
	if g.guards == nil {
		g.guards = map[string]*guard{}
	}
	if g.guards[key] == nil {
		g.guards[key] = build()
	}
	return g.guards[key]
}

// slots counts the concurrent requests to a provider.
type slots struct {
	limit int // 0 means none

	mu     sync.Mutex
	active int
}

func (r *slots) acquire() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit > 0 && r.active >= r.limit {
		return false
	}
	r.active++
	return true
}

func (r *slots) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active == 0
}

func (r *slots) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active--
}

// A guard limits the requests to one provider.
type guard struct {
	id    string // endpoint ID
	name  string // name of the endpoint: the ID without the organization
	slots *slots
	late  *lateness

	mu      sync.Mutex
	breaker Breaker
	counts  Counts
}

func newGuard(id string, s *slots, late *lateness) *guard {
	return &guard{id: id, name: id[strings.LastIndex(id, "/")+1:], slots: s, late: late}
}

// A request is one admitted request to a provider.
type request struct {
	guard    *guard
	began    time.Time
	canceled func() error // returns why the requester canceled, or nil
	token    *Token
	once     sync.Once
}

// begin admits a request. ctx is the context of the requester. The caller must finish the request.
func (g *guard) begin(ctx context.Context) (*request, error) {
	if !g.slots.acquire() {
		g.mu.Lock()
		g.counts.Rejected++
		g.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", g.name, ErrBusy)
	}
	now := time.Now()
	g.mu.Lock()
	token := g.breaker.Allow(now)
	if token == nil {
		g.counts.Rejected++
	}
	g.mu.Unlock()
	if token == nil {
		g.slots.release()
		return nil, fmt.Errorf("%s: %w", g.name, ErrOpen)
	}
	g.late.start()
	return &request{guard: g, began: now, canceled: ctx.Err, token: token}, nil
}

// note reports an outcome before the end of the request.
func (v *request) note(e Outcome) {
	now := time.Now()
	v.guard.mu.Lock()
	defer v.guard.mu.Unlock()
	v.guard.breaker.Done(v.token, e, now, 0)
	if e == Responding {
		v.guard.counts.Response.observe(now.Sub(v.began))
	}
}

// finish ends the request with the provider's error, or nil. Later calls do nothing.
func (v *request) finish(err error) {
	v.once.Do(func() {
		now := time.Now()
		ending, alone := classify(err)
		if ending == Failed && v.excused(err, now) {
			ending, alone = Neutral, 0
		}
		v.guard.late.end()
		v.guard.slots.release()
		v.guard.mu.Lock()
		defer v.guard.mu.Unlock()
		v.guard.breaker.Done(v.token, ending, now, alone)
		switch ending {
		case Succeeded:
			v.guard.counts.Succeeded++
		case Failed:
			v.guard.counts.Failed++
		case Neutral, Responding:
		}
	})
}

// excused reports whether a failure is not the provider's fault: the requester canceled first, or a timeout passed
// while this process ran late. An error response is never excused.
func (v *request) excused(err error, now time.Time) bool {
	var refused *pipeline.RefusedError
	var limit interface{ Timeout() bool }
	switch {
	case errors.As(err, &refused):
		return false
	case errors.Is(v.canceled(), context.Canceled):
		return true
	}
	return errors.As(err, &limit) && limit.Timeout() && v.guard.late.excuses(now)
}

// classify maps an error to an outcome. Invalid requests and unusable answers do not count
// against the provider.
func classify(err error) (e Outcome, alone time.Duration) {
	var refused *pipeline.RefusedError
	switch {
	case err == nil:
		return Succeeded, 0
	case errors.Is(err, context.Canceled), errors.Is(err, pipeline.ErrUnusable):
		return Neutral, 0
	case !errors.As(err, &refused):
		return Failed, 0
	case refused.IsRequestFault():
		return Neutral, 0
	}
	return Failed, refused.RetryAfter
}
