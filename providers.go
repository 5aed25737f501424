package main

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/eot/remote"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// configured returns the providers of c for commands, without connecting to them. The fakes
// are always among them.
func configured(c config.Config) *endpoints.Providers {
	set := c.Endpoints
	set.Fake = cmp.Or(set.Fake, "127.0.0.1:0")
	return set.Open()
}

// An agentProviders implements agents.ProviderChecker. A process has one.
type agentProviders struct {
	*endpoints.Providers
	checker *provider.Checker
	log     *slog.Logger
}

// newAgentProviders returns the checks of a command. Its machine may lack what the servers
// have, so espeak-ng and the servers' own fakes are not probed.
func newAgentProviders(p *endpoints.Providers, hasFakes bool, log *slog.Logger) *agentProviders {
	voices := maps.Clone(p.Voices)
	delete(voices, "espeak")
	c := &provider.Checker{Guards: &provider.Guards{}, Recognizers: p.Recognizers, Models: p.Models, Voices: voices}
	if !hasFakes {
		c.Recognizers, c.Models = maps.Clone(c.Recognizers), maps.Clone(c.Models)
		delete(c.Recognizers, "fake")
		delete(c.Models, "fake")
		delete(c.Voices, "fake")
	}
	return &agentProviders{p, c, log}
}

// Check implements agents.ProviderChecker.
func (p *agentProviders) Check(ctx context.Context, q db.Querier, d agents.Definition) error {
	if err := p.checkNames(ctx, q, d); err != nil {
		return err
	}
	_, err := provider.Judge(p.checker.Report(d.Speech), time.Now())
	return err
}

// checkNames fails if an agent names a provider that neither this process nor a server seen in
// the last 24 h has.
func (p *agentProviders) checkNames(ctx context.Context, q db.Querier, d agents.Definition) error {
	a := &conversation.Agent{Recognizers: p.Recognizers, Models: p.Models, Voices: p.Voices}
	if a.Check(d.Speech) == nil {
		return nil
	}
	n, err := providers.KnownProviders(ctx, q)
	if err != nil {
		return err
	}
	a = &conversation.Agent{
		Recognizers: withNames(p.Recognizers, n["asr"]),
		Models:      withNames(p.Models, n["llm"]),
		Voices:      withNames(p.Voices, n["tts"]),
	}
	return a.Check(d.Speech)
}

// Warnings implements agents.ProviderChecker.
func (p *agentProviders) Warnings(d agents.Definition) []string {
	a := &conversation.Agent{Recognizers: p.Recognizers, Models: p.Models, Voices: p.Voices}
	found, err := provider.Judge(p.checker.Report(d.Speech), time.Now())
	if err != nil { // Check returns the error
		found = nil
	}
	return append(a.Warnings(d.Speech), found...)
}

// Probe implements agents.ProviderChecker.
func (p *agentProviders) Probe(ctx context.Context, q db.Querier, orgID string, e pipeline.Engines) {
	p.checker.Check(ctx, e, true)
	if orgID == "" { // the organization has not been created yet
		return
	}
	if err := providers.SaveChecks(ctx, q, orgID, e, p.checker.Report(e)); err != nil {
		p.log.WarnContext(ctx, "storing the check of providers failed", "err", err)
	}
}

// withNames returns all with a zero value added for each further name.
func withNames[T any](all map[string]T, names []string) map[string]T {
	all = maps.Clone(all)
	for _, name := range names {
		if _, ok := all[name]; !ok {
			var none T
			all[name] = none
		}
	}
	return all
}

// openProviders builds the providers that agents may name. A provider with an account exists
// if the operator set its key or its URL.
func (srv *server) openProviders(ctx context.Context) error {
	set := srv.config.Endpoints
	if set.Fake == "" {
		var err error
		if srv.fakes, err = fakeprovider.Start(ctx, "127.0.0.1:0", demo.Script()); err != nil {
			return err
		}
		set.Fake = srv.fakes.Addr()
	}
	srv.providers = set.Open()
	srv.agent = &conversation.Agent{
		Recognizers: srv.providers.Recognizers, Models: srv.providers.Models, Voices: srv.providers.Voices,
		Guards: provider.Guards{Limits: srv.config.ProviderLimits}, Opinions: srv.config.AMDModel, Log: srv.log,
	}
	if srv.config.ClassifierURL != "" {
		srv.agent.Classifier = remote.New(srv.config.ClassifierURL, srv.config.ClassifierKey, 0, nil)
	}
	srv.agents = newAgentHealth(srv)
	return nil
}
