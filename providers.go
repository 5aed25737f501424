package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/conversation"
	"github.com/parley-voice/parley/pipeline/eot/remote"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
	"github.com/parley-voice/parley/pipeline/tools"
)

// agentProviders implements agents.ProviderChecker. A process has one agentProviders.
type agentProviders struct {
	clients provider.ClientSource
	checker *provider.Checker
	egress  safedial.Rules // hosts that tools may call
	log     *slog.Logger
}

// commandProviders is the agentProviders of a command, with its own endpoints.
type commandProviders struct {
	*agentProviders
	registry *endpoints.Registry
	settings endpoints.Set
	notes    string // last reported error of providers.Merge
}

// commandEndpoints returns the endpoints of the settings and of the database. notes says which endpoints of the
// database are not used.
func (e *env) commandEndpoints(c config.Config, q db.Querier) (all endpoints.Set, notes, err error) {
	stored, err := providers.ReadEndpoints(e, q)
	if err != nil {
		return stored, nil, err
	}
	all, notes = providers.Merge(c.Endpoints, stored)
	return all, notes, nil
}

const warnUnused = "some provider endpoints are not used"

// providerChecks returns the provider checks of a command. It does not connect to providers. It includes the fake
// providers.
func (e *env) providerChecks(c config.Config, q db.Querier) (*commandProviders, error) {
	set, notes, err := e.commandEndpoints(c, q)
	if err != nil {
		return nil, err
	}
	if notes != nil {
		e.log("warn").Warn(warnUnused, "err", notes)
	}
	set.Fake = cmp.Or(set.Fake, "127.0.0.1:0")
	egress := safedial.Rules{Hosts: c.ToolHosts}
	registry := set.Open(egress)
	p := &commandProviders{registry: registry, settings: c.Endpoints, notes: fmt.Sprint(notes)}
	probed := clientFilter{registry, c.Endpoints.Fake != ""}
	p.agentProviders = &agentProviders{registry, &provider.Checker{Guards: &provider.Guards{}, Clients: probed}, egress, e.log("warn")}
	return p, nil
}

// use replaces the endpoints of the database by stored.
func (p *commandProviders) use(stored endpoints.Set) {
	set, notes := providers.Merge(p.settings, stored)
	if text := fmt.Sprint(notes); notes != nil && text != p.notes {
		p.notes = text
		p.log.Warn(warnUnused, "err", notes)
	}
	set.Fake = p.settings.Fake
	p.registry.Update(set)
}

// warnUnusable warns about published agents whose endpoints the file has removed.
func (p *commandProviders) warnUnusable(ctx context.Context, q db.Querier, s apply.Spec, warn func(string)) error {
	if s.Providers == nil && !slices.ContainsFunc(s.Organizations, func(o apply.Organization) bool { return o.Providers != nil }) {
		return nil
	}
	all, err := agents.Published(ctx, q)
	if err != nil {
		return err
	}
	for _, a := range all {
		if err := p.checkNames(ctx, q, a.Definition.Speech.For(a.OrgID)); err != nil {
			warn(fmt.Sprintf("organization %q: agent %q can make no calls: %v", a.Organization, a.Name, err))
		}
	}
	return nil
}

// clientFilter removes espeak-ng and the fake providers of servers, so that they are not tested. The machine that runs
// the command may not have them.
type clientFilter struct {
	provider.ClientSource
	hasFakes bool
}

// Current implements provider.ClientSource.
func (f clientFilter) Current() *provider.Clients {
	c := *f.ClientSource.Current()
	c.Recognizers, c.Models, c.Voices = maps.Clone(c.Recognizers), maps.Clone(c.Models), maps.Clone(c.Voices)
	delete(c.Voices, "espeak")
	if !f.hasFakes {
		delete(c.Recognizers, "fake")
		delete(c.Models, "fake")
		delete(c.Voices, "fake")
	}
	return &c
}

// Check implements agents.ProviderChecker.
func (p *agentProviders) Check(ctx context.Context, q db.Querier, orgID string, d agents.Definition) error {
	e := d.Speech.For(orgID)
	if err := p.checkNames(ctx, q, e); err != nil {
		return err
	}
	if err := tools.Check(d.ToolDefinitions(), p.egress); err != nil { // the setting may have changed since the draft was saved
		return err
	}
	_, err := provider.Judge(p.checker.Report(e), time.Now())
	return err
}

// checkNames returns an error if e names a provider that neither this process nor a server that was active in the last
// 24 h has.
func (p *agentProviders) checkNames(ctx context.Context, q db.Querier, e pipeline.Engines) error {
	c := p.clients.Current()
	if c.Check(e) == nil {
		return nil
	}
	n, err := providers.KnownProviders(ctx, q)
	if err != nil {
		return err
	}
	all := provider.Clients{
		Recognizers: withNames(c.Recognizers, n["asr"]), Models: withNames(c.Models, n["llm"]), Voices: withNames(c.Voices, n["tts"]),
		Organizations: c.Organizations,
	}
	return all.Check(e)
}

// Warnings implements agents.ProviderChecker.
func (p *agentProviders) Warnings(orgID string, d agents.Definition) []string {
	e := d.Speech.For(orgID)
	found, err := provider.Judge(p.checker.Report(e), time.Now())
	if err != nil { // Check returns the error
		found = nil
	}
	return slices.Concat(p.clients.Current().Warnings(e), found, tools.Unreachable(d.ToolDefinitions(), p.egress))
}

// Probe implements agents.ProviderChecker.
func (p *agentProviders) Probe(ctx context.Context, orgID string, e pipeline.Engines) {
	p.checker.Check(ctx, e.For(orgID), true)
}

// Save implements agents.ProviderChecker.
func (p *agentProviders) Save(ctx context.Context, q db.Querier, orgID string, e pipeline.Engines) {
	e = e.For(orgID)
	if err := providers.SaveChecks(ctx, q, orgID, e, p.checker.Report(e)); err != nil {
		p.log.WarnContext(ctx, "failed to store the test results of providers", "err", err)
	}
}

// withNames returns a copy of all, with a zero value for each name that is missing.
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

// providerRegistry holds the endpoints of the server. They can change while the server runs.
type providerRegistry struct {
	*endpoints.Registry
	follower *providers.Follower
	current  atomic.Pointer[endpoints.Set]
}

func (p *providerRegistry) set() endpoints.Set {
	if s := p.current.Load(); s != nil {
		return *s
	}
	return endpoints.Set{}
}

// openProviders opens the providers in the settings and in the database.
func (srv *server) openProviders(ctx context.Context) error {
	set := srv.config.Endpoints
	if set.Fake == "" {
		var err error
		if srv.fakes, err = fakeprovider.Start(ctx, "127.0.0.1:0", demo.Script()); err != nil {
			return err
		}
		set.Fake = srv.fakes.Addr()
	}
	srv.providers.Registry = set.Open(safedial.Rules{Hosts: srv.config.ToolHosts})
	srv.agent = &conversation.Agent{
		Clients: srv.providers.Registry, Guards: provider.Guards{Limits: srv.config.ProviderLimits}, Opinions: srv.config.AMDModel, Log: srv.log,
		OnTest: func(usage []pipeline.EngineUsage) { srv.metrics.CountTestCost(srv.store.Prices.Cost(usage, nil)) },
	}
	if srv.config.ClassifierURL != "" {
		srv.agent.Classifier = remote.New(srv.config.ClassifierURL, srv.config.ClassifierKey, 0, nil)
	}
	srv.agents = newAgentHealth(srv, set)
	srv.providers.follower = &providers.Follower{DB: srv.db.Pool, Settings: set, Use: srv.useProviders, Log: srv.log}
	return srv.providers.follower.Load(ctx)
}

// useProviders replaces the endpoints. Calls in progress keep the old endpoints.
func (srv *server) useProviders(set endpoints.Set) {
	first := srv.providers.current.Swap(&set) == nil
	changed := srv.providers.Update(set)
	limits := set.Limits()
	maps.Copy(limits, srv.config.ProviderLimits)
	srv.agent.Guards.SetLimits(limits)
	srv.agent.Guards.Reset(changed)
	srv.agents.providers.checker.Forget(changed)
	srv.agents.monitor.Forget()
	srv.agent.ForgetPhrases()
	if !first {
		srv.log.Info("endpoints of providers changed", "changed", changed)
	}
}
