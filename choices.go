package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	pages "github.com/parley-voice/parley/api/dashboard/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/tts"
)

// providerChoices returns the providers that agents of an organization may use, for the form of an agent.
func (srv *server) providerChoices(ctx context.Context, q db.Querier, orgID string) ([]pages.Choice, error) {
	known, err := providers.KnownProviders(ctx, q)
	if err != nil {
		return nil, err
	}
	return choices(srv.providers.set(), srv.providers.Current(), known, orgID), nil
}

// choices merges the providers of this server, of other servers and of the organization. Providers whose key no server has
// follow.
func choices(set endpoints.Set, clients *provider.Clients, known providers.Names, orgID string) (all []pages.Choice) {
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
			c := pages.Choice{Serves: serves, Name: name, Title: kinds[kind].Title, Configured: true}
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
				all = append(all, pages.Choice{Serves: serves, Name: name, Title: k.Title})
			}
		}
	}
	slices.SortFunc(all, func(a, b pages.Choice) int {
		rank := func(c pages.Choice) int {
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
