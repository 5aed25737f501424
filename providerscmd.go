package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/provider/selftest"
	"github.com/parley-voice/parley/pipeline/safedial"
)

type providersCmd struct {
	List  listProvidersCmd  `cmd:"" help:"List the configured providers."`
	Check checkProvidersCmd `cmd:"" help:"Send a short request to each configured provider and print what it answers."`
}

type listProvidersCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the endpoints without their keys.
func (l listProvidersCmd) Run(e *env) error {
	c, err := e.config()
	if err != nil {
		return err
	}
	set, organizations, err := e.allEndpoints(c)
	if err != nil {
		fmt.Fprintf(e.errs, "warning: only the endpoints of the settings are listed: %v\n", err)
		set = c.Endpoints
	}
	t := admincli.NewTable("NAME", "KIND", "SERVES", "HOST", "KEY", "FROM")
	for _, name := range slices.Sorted(maps.Keys(set.Named)) {
		from := "file"
		if _, ok := c.Endpoints.Named[name]; ok {
			from = "settings"
		}
		addEndpoint(t, name, set.Named[name], from)
	}
	for _, orgID := range slices.SortedFunc(maps.Keys(set.Organizations), func(a, b string) int {
		return cmp.Compare(organizations[a], organizations[b])
	}) {
		own := set.Organizations[orgID]
		for _, name := range slices.Sorted(maps.Keys(own)) {
			addEndpoint(t, name, own[name], "file, organization "+organizations[orgID])
		}
	}
	return t.Print(e.out, l.JSON)
}

func addEndpoint(t *admincli.Table, name string, p endpoints.Endpoint, from string) {
	host, key := "default", "none"
	if u, err := url.Parse(p.URL); err == nil && u.Host != "" {
		host = u.Host
	}
	if p.Key != "" {
		key = "set"
	}
	t.Add(name, p.Kind, endpoints.Kinds()[p.Kind].Serves, host, key, from)
}

// allEndpoints returns the endpoints of the settings and of the database, and the names of all organizations by ID. If
// there is no database, it does not create one.
func (e *env) allEndpoints(c config.Config) (set endpoints.Set, organizations map[string]string, err error) {
	if !databaseConfig(c, nil).Exists() {
		return c.Endpoints, nil, nil
	}
	d, err := e.database(c)
	if err != nil {
		return set, nil, err
	}
	defer d.Close()
	var notes error
	if set, notes, err = e.commandEndpoints(c, d.Pool); err != nil {
		return set, nil, err
	}
	if notes != nil {
		e.log("warn").Warn(warnUnused, "err", notes)
	}
	organizations, err = apikeys.OrganizationNames(e, d.Pool)
	return set, organizations, err
}

type checkProvidersCmd struct {
	Names    []string `arg:"" optional:"" name:"name" help:"Provider to check, or ORGANIZATION/NAME for one of an organization. Default: all."`
	Speak    bool     `help:"Let each voice say a whole sentence."`
	Listen   bool     `help:"Send that sentence to each speech-to-text provider, and print its text."`
	Language string   `help:"Language to request, such as ru or en-US." placeholder:"TAG"`
	Text     string   `help:"Sentence to say instead of the English one." placeholder:"TEXT"`
	Agents   bool     `help:"Check the models and voices of all published agents instead. Launches of campaigns use the results for an hour."`
	JSON     bool     `name:"json" help:"Print JSON: a list of results."`
}

// Run tests the providers. It returns an error if a provider fails.
func (c checkProvidersCmd) Run(e *env) error {
	settings, err := e.config()
	if err != nil {
		return err
	}
	if c.Agents {
		return c.checkAgents(e, settings)
	}
	set, organizations, err := e.allEndpoints(settings)
	if err != nil {
		fmt.Fprintf(e.errs, "warning: only the endpoints of the settings are checked: %v\n", err)
		set = settings.Endpoints
	}
	p, end := openClients(settings, set, organizations, c.Names)
	defer end()
	known := slices.Concat(slices.Collect(maps.Keys(p.Recognizers)), slices.Collect(maps.Keys(p.Models)), slices.Collect(maps.Keys(p.Voices)))
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range c.Names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%q is not a configured provider; accepted: %s", name, strings.Join(known, ", "))
		}
	}
	if len(known) == 0 {
		return errors.New("no provider is configured; docs/providers.md lists the settings")
	}
	if !c.JSON {
		fmt.Fprintf(e.out, "%-28s %-10s %9s  %s\n", "NAME", "SERVES", "LATENCY", "RESULT")
	}
	table := admincli.NewTable("NAME", "SERVES", "LATENCY MS", "DETAIL", "ERROR")
	test := selftest.Test{
		Recognizers: p.Recognizers, Models: p.Models, Voices: p.Voices,
		Names: c.Names, Speak: c.Speak, Listen: c.Listen, Language: c.Language, Text: c.Text,
	}
	failed := 0
	test.Run(e, func(r selftest.Result) {
		var fault any // null without an error
		if r.Err != nil {
			failed++
			fault = r.Err.Error()
		}
		table.Add(r.Name, r.Serves, r.Latency.Milliseconds(), r.Detail, fault)
		if !c.JSON {
			printResult(e.out, r)
		}
	})
	if c.JSON {
		if err = table.Print(e.out, true); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("providers that failed: %d", failed)
	}
	return nil
}

// openClients returns the clients of all endpoints, and espeak-ng if it is installed or among names. end closes them.
func openClients(c config.Config, set endpoints.Set, organizations map[string]string, names []string) (p *provider.Clients, end func()) {
	registry := set.Open(safedial.Rules{Hosts: c.ToolHosts})
	p = withOrganizations(registry.Current(), organizations)
	if _, err := exec.LookPath("espeak-ng"); err != nil && !slices.Contains(names, "espeak") {
		delete(p.Voices, "espeak")
	}
	return p, func() { _ = registry.Close() } // closes idle connections
}

// withOrganizations returns all clients. A client of an organization has the name ORGANIZATION/NAME.
func withOrganizations(c *provider.Clients, organizations map[string]string) *provider.Clients {
	all := &provider.Clients{
		Recognizers: maps.Clone(c.Recognizers), Models: maps.Clone(c.Models), Voices: maps.Clone(c.Voices),
	}
	for orgID, own := range c.Organizations {
		addClients(all.Recognizers, own.Recognizers, organizations[orgID])
		addClients(all.Models, own.Models, organizations[orgID])
		addClients(all.Voices, own.Voices, organizations[orgID])
	}
	return all
}

func addClients[T any](to, own map[string]T, organization string) {
	for name, client := range own {
		to[organization+"/"+name] = client
	}
}

// checkAgents tests the providers of all published agents, with the models and voices of the agents.
func (c checkProvidersCmd) checkAgents(e *env, settings config.Config) error {
	d, err := e.database(settings)
	if err != nil {
		return err
	}
	defer d.Close()
	all, err := agents.Published(e, d.Pool)
	if err != nil {
		return err
	}
	known, err := e.providerChecks(settings, d.Pool)
	if err != nil {
		return err
	}
	table := admincli.NewTable("ORGANIZATION", "AGENT", "RESULT")
	failed := 0
	for _, a := range all {
		known.Probe(e, a.OrgID, a.Definition.Speech)
		known.Save(e, d.Pool, a.OrgID, a.Definition.Speech)
		result := "ok"
		if found := known.Warnings(a.OrgID, a.Definition); len(found) > 0 {
			result = "warning: " + strings.Join(found, "; ")
		}
		if refused := known.Check(e, d.Pool, a.OrgID, a.Definition); refused != nil {
			failed++
			result = "failed: " + strings.ReplaceAll(refused.Error(), "\n", "; ")
		}
		table.Add(a.Organization, a.Name, result)
	}
	if err = table.Print(e.out, c.JSON); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("agents whose calls would fail: %d", failed)
	}
	return nil
}

func printResult(out io.Writer, r selftest.Result) {
	serves := map[string]string{"asr": "speech-to-text", "llm": "model", "tts": "voice"}[r.Serves]
	text := r.Detail
	if r.Serves == "asr" && text != "stream opened" && text != "silence transcribed" || r.Serves == "llm" {
		text = fmt.Sprintf("%q", text)
	}
	if r.Err != nil {
		text = "failed: " + strings.ReplaceAll(r.Err.Error(), "\n", "; ")
	}
	fmt.Fprintf(out, "%-28s %-14s %6d ms  %s\n", r.Name, serves, r.Latency/time.Millisecond, text)
}
