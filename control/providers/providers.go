// Package providers reports which agents this server can make calls as now: the recognizer, model and voice of the
// agent, or a fallback of each, must be usable. While calls wait for a provider, the package tests it with short
// requests, so that no call is needed to detect its recovery.
package providers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// A Checker reports whether providers work; *pipeline/provider.Checker implements it.
type Checker interface {
	Usable(e pipeline.Engines) error
	Verified(e pipeline.Engines) bool
	Check(ctx context.Context, e pipeline.Engines, all bool)
}

// An Agent identifies a version of an agent, which never changes.
type Agent struct {
	ID      string
	Version int
}

// Key returns the agent's name in SQL of the dial queue.
func (a Agent) Key() string { return fmt.Sprintf("%s:%d", a.ID, a.Version) }

// A Monitor reports which agents this server can make calls as. A server has one.
type Monitor struct {
	Checker Checker
	// Read returns the engines of an agent. wrong is set if this server can never run the agent, err if the agent could
	// not be read.
	Read func(ctx context.Context, a Agent) (e pipeline.Engines, wrong, err error)
	Log  *slog.Logger

	mu    sync.Mutex
	known map[Agent]agentEngines
	wants map[Agent]demand
}

// agentEngines is the result of Monitor.Read.
type agentEngines struct {
	engines pipeline.Engines
	wrong   error
}

// demand records that calls wait for an agent's providers.
type demand struct {
	engines pipeline.Engines
	last    time.Time // last query
	verify  bool      // all its providers must be tested
	down    bool      // it was unusable at the last query
}

const (
	tick      = time.Second
	demandTTL = time.Minute
	maxAgents = 10_000 // bounds known and wants; a full map is emptied
)

// IsReady reports whether calls can be made as an agent now. It returns an error if that could not be determined.
func (m *Monitor) IsReady(ctx context.Context, agentID string, version int) (bool, error) {
	a := Agent{agentID, version}
	k, err := m.read(ctx, a)
	if err != nil {
		return false, err
	}
	return m.usable(ctx, a, k) == nil, nil
}

// A State describes an agent on this server.
type State struct {
	Engines  pipeline.Engines
	Wrong    error // why this server can never run the agent; nil if it can
	Unusable error // why it cannot now
}

// State returns the state of an agent. It sends no requests.
func (m *Monitor) State(ctx context.Context, agentID string, version int) (State, error) {
	k, err := m.read(ctx, Agent{agentID, version})
	if err != nil || k.wrong != nil {
		return State{Wrong: k.wrong}, err
	}
	return State{Engines: k.engines, Unusable: m.Checker.Usable(k.engines)}, nil
}

// IsVerified reports whether the providers of an agent responded to a recent test. A query keeps the tests running
// for a minute.
func (m *Monitor) IsVerified(ctx context.Context, agentID string, version int) (bool, error) {
	a := Agent{agentID, version}
	k, err := m.read(ctx, a)
	if err != nil || k.wrong != nil {
		return false, err
	}
	m.want(a, k.engines, func(w *demand) { w.verify = true })
	return m.Checker.Verified(k.engines), nil
}

// MustWait reports whether a call with engines must wait because one of them is unusable. Until they are usable,
// UnavailableAgents contains the agent.
func (m *Monitor) MustWait(ctx context.Context, a Agent, e pipeline.Engines) bool {
	return m.usable(ctx, a, agentEngines{engines: e}) != nil
}

// UnavailableAgents returns the keys of the recently queried agents that are unusable now.
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

// usable returns why calls cannot be made as an agent, or nil. If so, its providers are tested.
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
		m.Log.WarnContext(ctx, "calls held: a provider of the agent is unavailable", "agent", a.ID, "version", a.Version, "err", err)
	case err == nil:
		m.Log.InfoContext(ctx, "calls resumed: the providers of the agent are available", "agent", a.ID, "version", a.Version)
	}
	return err
}

// read returns the engines of an agent, and caches them.
func (m *Monitor) read(ctx context.Context, a Agent) (agentEngines, error) {
	m.mu.Lock()
	k, ok := m.known[a]
	m.mu.Unlock()
	if ok {
		return k, nil
	}
	var err error
	if k.engines, k.wrong, err = m.Read(ctx, a); err != nil {
		return k, fmt.Errorf("agent %s, version %d: %w", a.ID, a.Version, err)
	}
	if k.wrong != nil && m.Log != nil {
		m.Log.WarnContext(ctx, "calls held: this server cannot run the agent", "agent", a.ID, "version", a.Version, "err", k.wrong)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxAgents {
		m.known = map[Agent]agentEngines{}
	}
	m.known[a] = k
	return k, nil
}

// want records demand for an agent.
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

// Run tests the providers in demand until ctx ends.
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

// maxChecks bounds the agents whose providers are tested at once.
const maxChecks = 8

// checkDemanded tests the providers of agents in demand.
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

// demanded returns the agents in demand and drops the others.
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
