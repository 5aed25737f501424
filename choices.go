package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/tts"
)

// choices returns the providers that agents of an organization may use, for the form of an agent.
func (p *providerRegistry) choices(ctx context.Context, q db.Querier, orgID string) ([]agents.Choice, error) {
	known, err := providers.KnownProviders(ctx, q)
	if err != nil {
		return nil, err
	}
	return choices(p.set(), p.Current(), known, orgID), nil
}

// choices merges the providers of this server, of other servers and of the organization. Providers whose key no server has
// follow.
func choices(set endpoints.Set, clients *provider.Clients, known providers.Names, orgID string) (all []agents.Choice) {
	own := clients.Organizations[orgID]
	if own == nil {
		own = &provider.Clients{}
	}
	kinds := endpoints.Kinds()
	for serves, names := range map[string][]string{
		"asr": slices.AppendSeq(slices.Collect(maps.Keys(clients.Recognizers)), maps.Keys(own.Recognizers)),
		"llm": slices.AppendSeq(slices.Collect(maps.Keys(clients.Models)), maps.Keys(own.Models)),
		"tts": slices.AppendSeq(slices.Collect(maps.Keys(clients.Voices)), maps.Keys(own.Voices)),
	} {
		names = append(names, known[serves]...)
		slices.Sort(names)
		names = slices.Compact(names)
		for _, name := range names {
			kind := cmp.Or(set.Organizations[orgID][name].Kind, set.Named[name].Kind, name)
			c := agents.Choice{Serves: serves, Name: name, Title: kinds[kind].Title, Configured: true}
			if name == "fake" {
				c.Title = "for tests, not a real provider"
			}
			if serves == "tts" {
				c.Voices = tts.KnownVoices(kind)
			}
			all = append(all, c)
		}
		for name, k := range kinds {
			if slices.Contains(k.Serves, serves) && k.NeedsKey() && !slices.Contains(names, name) {
				all = append(all, agents.Choice{Serves: serves, Name: name, Title: k.Title})
			}
		}
	}
	slices.SortFunc(all, func(a, b agents.Choice) int {
		rank := func(c agents.Choice) int {
			switch {
			case !c.Configured:
				return 2
			case c.Name == "fake":
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.Serves, b.Serves), cmp.Compare(rank(a), rank(b)), strings.Compare(a.Name, b.Name))
	})
	return all
}
