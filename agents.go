package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
)

// agentHealth decides which agents this server can run now.
type agentHealth struct {
	db        *db.DB
	store     *store.Store
	spool     *recording.Spool // set before the first call
	agent     *conversation.Agent
	settings  endpoints.Set // settings of this server only, without endpoints in the database
	providers *agentProviders
	monitor   *providers.Monitor
}

func newAgentHealth(srv *server, settings endpoints.Set) *agentHealth {
	a := srv.agent
	checker := &provider.Checker{Guards: &a.Guards, Clients: a.Clients}
	h := &agentHealth{
		db: srv.db, store: srv.store, agent: a, settings: settings,
		providers: &agentProviders{a.Clients, checker, srv.store.Egress, srv.log},
	}
	h.monitor = &providers.Monitor{Checker: checker, Read: h.speech, Log: srv.log}
	return h
}

// report stores the names of the providers in this server's settings. Other servers and commands need these names, and
// find all other providers in the database.
func (h *agentHealth) report(ctx context.Context) error {
	registry := h.settings.Open(safedial.Rules{})
	defer func() { _ = registry.Close() }() // the registry has no connections
	p := registry.Current()
	return providers.Report(ctx, h.db.Pool, providers.Names{
		"asr": slices.Collect(maps.Keys(p.Recognizers)),
		"llm": slices.Collect(maps.Keys(p.Models)),
		"tts": slices.Collect(maps.Keys(p.Voices)),
	})
}

// check reports whether calls can be made with an agent. It sends no requests.
func (h *agentHealth) check(ctx context.Context, q db.Querier, orgID, agentID string, version int) (s service.AgentState, err error) {
	state, err := h.monitor.State(ctx, agentID, version)
	if err != nil {
		return s, err
	}
	if state.Wrong != nil { // another server may have the provider
		var d agents.Definition
		if d, err = agents.ReadVersion(ctx, q, agentID, version); err == nil {
			s.NoProvider = h.providers.checkNames(ctx, q, d.Speech.For(orgID))
		}
		return s, err
	}
	if state.Unusable != nil {
		s.Warnings = []string{state.Unusable.Error()}
	}
	stored, err := providers.ReadChecks(ctx, q, orgID, state.Engines)
	if err != nil {
		return s, err
	}
	found, refused := provider.Judge(provider.Newest(h.providers.checker.Report(state.Engines), stored), time.Now())
	if s.Refused = refused; len(found) > 0 {
		s.Warnings = found
	}
	return s, nil
}

// recheck sends a short request to each provider of an agent, and stores the results. It returns within a second.
func (h *agentHealth) recheck(ctx context.Context, agentID string, version int) {
	_, _ = h.monitor.IsVerified(ctx, agentID, version) // fails only if the agent cannot be read
}

// speech returns the providers of an agent version. wrong says why this server cannot run the version, or is nil.
func (h *agentHealth) speech(ctx context.Context, a providers.Agent) (e pipeline.Engines, wrong, err error) {
	d, err := agents.ReadVersion(ctx, h.db.DialPool, a.ID, a.Version)
	if errors.Is(err, agents.ErrUnknown) {
		return e, err, nil
	}
	if err != nil {
		return e, nil, err
	}
	_, unbuilt := tools.Build(d.ToolDefinitions(), h.store.Egress, h.store.HTTPClient)
	return d.Speech, errors.Join(h.agent.Check(d.Speech), unbuilt), nil
}

// canCall reports whether this server can place calls with an agent version now.
func (h *agentHealth) canCall(ctx context.Context, agentID string, version int) (bool, error) {
	if can, err := h.canRecord(ctx, agentID, version); err != nil || !can {
		return false, err
	}
	return h.monitor.IsReady(ctx, agentID, version)
}

// canRecord reports whether this server has enough disk space to record calls of an agent. It returns true for agents
// that do not record.
func (h *agentHealth) canRecord(ctx context.Context, agentID string, version int) (bool, error) {
	if h.spool.CheckSpace() == nil {
		return true, nil
	}
	d, err := agents.ReadVersion(ctx, h.db.DialPool, agentID, version)
	return err == nil && !d.Recording, err
}
