package main

import (
	"cmp"
	"context"
	"maps"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
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

// checkProviders returns a function that fails if an agent names a provider that neither p nor
// a server seen in the last 24 h has.
func checkProviders(p *endpoints.Providers) func(ctx context.Context, q db.Querier, d agents.Definition) error {
	return func(ctx context.Context, q db.Querier, d agents.Definition) error {
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
}

// providerWarnings returns a function that returns options of an agent that its providers ignore.
func providerWarnings(p *endpoints.Providers) func(agents.Definition) []string {
	a := &conversation.Agent{Recognizers: p.Recognizers, Models: p.Models, Voices: p.Voices}
	return func(d agents.Definition) []string { return a.Warnings(d.Speech) }
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
