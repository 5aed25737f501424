// Package providers reports which agents this server can run now. A server can run an agent if the recognizer, the
// model and the voice are usable, or a fallback for each of them. While calls wait for a provider, the package tests
// the provider with short requests. The recovery of a provider is therefore detected without a call.
package providers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// Checker reports whether providers work. *pipeline/provider.Checker implements it.
type Checker interface {
	Usable(e pipeline.Engines) error
	Verified(e pipeline.Engines) bool
	Check(ctx context.Context, e pipeline.Engines, all bool)
}

// Agent identifies a version of an agent. A version never changes.
type Agent struct {
	ID      string
	Version int
}

// Key returns the key of the agent in SQL of the dial queue: "id:version".
func (a Agent) Key() string { return fmt.Sprintf("%s:%d", a.ID, a.Version) }

// Monitor reports which agents this server can run now. A server has one Monitor.
type Monitor struct {
	Checker Checker
	// Read returns the engines (recognizer, model, voice) of an agent. wrong says why this server can never run the
	// agent. err says why the agent could not be read.
	Read func(ctx context.Context, a Agent) (e pipeline.Engines, wrong, err error)
	Log  *slog.Logger

	mu    sync.Mutex
	known map[Agent]agentEngines
	age   int // number of calls of Forget
	wants map[Agent]demand
}

// agentEngines is a cached result of Monitor.Read.
type agentEngines struct {
	engines pipeline.Engines
	wrong   error
}

// demand records that calls wait for the providers of an agent.
type demand struct {
	engines pipeline.Engines
	last    time.Time // time of the last query about the agent
	verify  bool      // test every provider, not only unusable providers
	down    bool      // the agent was unusable at the last query
}

const (
	tick      = time.Second
	demandTTL = time.Minute
	maxAgents = 10_000 // maximum size of the maps known and wants; a full map is emptied
)

// IsReady reports whether this server can run an agent now. It returns an error if the agent cannot be read.
func (m *Monitor) IsReady(ctx context.Context, agentID string, version int) (bool, error) {
	a := Agent{agentID, version}
	k, err := m.read(ctx, a)
	if err != nil {
		return false, err
	}
	return m.usable(ctx, a, k) == nil, nil
}

// State is the state of an agent on this server.
type State struct {
	Engines  pipeline.Engines
	Wrong    error // why this server can never run the agent; nil if it can
	Unusable error // why this server cannot run the agent now; nil if it can
}

// State returns the state of an agent without sending requests.
func (m *Monitor) State(ctx context.Context, agentID string, version int) (State, error) {
	k, err := m.read(ctx, Agent{agentID, version})
	if err != nil || k.wrong != nil {
		return State{Wrong: k.wrong}, err
	}
	return State{Engines: k.engines, Unusable: m.Checker.Usable(k.engines)}, nil
}

// IsVerified reports whether all providers of an agent answered a recent test. Each call of IsVerified keeps the tests
// running for one more minute.
func (m *Monitor) IsVerified(ctx context.Context, agentID string, version int) (bool, error) {
	a := Agent{agentID, version}
	k, err := m.read(ctx, a)
	if err != nil || k.wrong != nil {
		return false, err
	}
	m.want(a, k.engines, func(w *demand) { w.verify = true })
	return m.Checker.Verified(k.engines), nil
}

// MustWait reports whether a call with the engines e must wait because an engine is unusable. If so, UnavailableAgents
// contains the agent until all its engines are usable.
func (m *Monitor) MustWait(ctx context.Context, a Agent, e pipeline.Engines) bool {
	return m.usable(ctx, a, agentEngines{engines: e}) != nil
}

// UnavailableAgents returns the keys of recently queried agents that cannot run now.
func (m *Monitor) UnavailableAgents() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := []string{}
	for a, w := range m.wants {
		if w.down && m.Checker.Usable(w.engines) != nil {
			keys = append(keys, a.Key())
		}
	}
	return keys
}

// usable returns an error with the reason if an agent cannot run now. In that case it starts tests of the agent's
// providers.
func (m *Monitor) usable(ctx context.Context, a Agent, k agentEngines) error {
	if k.wrong != nil {
		return k.wrong
	}
	err := m.Checker.Usable(k.engines)
	m.mu.Lock()
	was := m.wants[a].down
	m.mu.Unlock()
	if err == nil && !was {
		return nil
	}
	m.want(a, k.engines, func(w *demand) { w.down = err != nil })
	switch {
	case m.Log == nil:
	case err != nil && !was:
		m.Log.WarnContext(ctx, "calls wait: a provider of the agent is unavailable", "agent", a.ID, "version", a.Version, "err", err)
	case err == nil:
		m.Log.InfoContext(ctx, "calls resumed: the providers of the agent are available", "agent", a.ID, "version", a.Version)
	}
	return err
}

// read returns the engines of an agent. It caches them.
func (m *Monitor) read(ctx context.Context, a Agent) (agentEngines, error) {
	m.mu.Lock()
	k, ok := m.known[a]
	age := m.age
	m.mu.Unlock()
	if ok {
		return k, nil
	}
	var err error
	if k.engines, k.wrong, err = m.Read(ctx, a); err != nil {
		return k, fmt.Errorf("agent %s, version %d: %w", a.ID, a.Version, err)
	}
	if k.wrong != nil && m.Log != nil {
		m.Log.WarnContext(ctx, "calls wait: this server cannot run the agent", "agent", a.ID, "version", a.Version, "err", k.wrong)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxAgents {
		m.known = map[Agent]agentEngines{}
	}
	if m.age == age {
		m.known[a] = k
	}
	return k, nil
}

// Forget deletes cached engines. Call it after the providers of this server have changed.
func (m *Monitor) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
	m.age++
}

// want records demand for an agent, and applies change to it.
func (m *Monitor) want(a Agent, e pipeline.Engines, change func(*demand)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wants == nil || len(m.wants) >= maxAgents {
		m.wants = map[Agent]demand{}
	}
	w := m.wants[a]
	w.engines, w.last = e, time.Now()
	change(&w)
	m.wants[a] = w
}

// Run tests the providers of recently queried agents until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			m.checkDemanded(ctx)
		}
	}
}

// maxChecks is the maximum number of agents whose providers are tested at the same time.
const maxChecks = 8

func (m *Monitor) checkDemanded(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	room := make(chan struct{}, maxChecks)
	for _, w := range m.demanded(time.Now()) {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			m.Checker.Check(ctx, w.engines, w.verify)
		})
	}
}

// demanded returns the demand for agents that were queried within demandTTL, and deletes older demand.
func (m *Monitor) demanded(now time.Time) []demand {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []demand
	for a, w := range m.wants {
		if now.Sub(w.last) > demandTTL {
			delete(m.wants, a)
			continue
		}
		all = append(all, w)
	}
	return all
}
