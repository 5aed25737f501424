package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/tools"
)

// An agentHealth decides which agents this server can run now.
type agentHealth struct {
	db        *db.DB
	store     *store.Store
	spool     *recording.Spool // set before the first call
	agent     *conversation.Agent
	providers *endpoints.Providers
	monitor   *providers.Monitor
}

func newAgentHealth(srv *server) *agentHealth {
	a := srv.agent
	h := &agentHealth{db: srv.db, store: srv.store, agent: a, providers: srv.providers}
	h.monitor = &providers.Monitor{
		Checker: &provider.Checker{Guards: &a.Guards, Recognizers: a.Recognizers, Models: a.Models, Voices: a.Voices},
		Read:    h.speech, Log: srv.log,
	}
	return h
}

// report stores the names of this server's providers for other servers and commands.
func (h *agentHealth) report(ctx context.Context) error {
	p := h.providers
	return providers.Report(ctx, h.db.Pool, providers.Names{
		"asr": slices.Collect(maps.Keys(p.Recognizers)),
		"llm": slices.Collect(maps.Keys(p.Models)),
		"tts": slices.Collect(maps.Keys(p.Voices)),
	})
}

// check returns an error if no server has a provider of the agent, and reports whether this
// server can run the agent now.
func (h *agentHealth) check(ctx context.Context, q db.Querier, agentID string, version int) (wrong error, now bool, err error) {
	wrong, now, err = h.monitor.Status(ctx, agentID, version)
	if err != nil || wrong == nil {
		return nil, now, err
	}
	d, err := agents.ReadVersion(ctx, q, agentID, version)
	if err != nil {
		return nil, false, err
	}
	return checkProviders(h.providers)(ctx, q, d), false, nil
}

// speech returns the providers of an agent version, and wrong if this server cannot run it.
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

// canRecord reports whether this server has room for the recordings of an agent, or the agent
// does not record.
func (h *agentHealth) canRecord(ctx context.Context, agentID string, version int) (bool, error) {
	if h.spool.CheckSpace() == nil {
		return true, nil
	}
	d, err := agents.ReadVersion(ctx, h.db.DialPool, agentID, version)
	return err == nil && !d.Recording, err
}
