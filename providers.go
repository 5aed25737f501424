package main

import (
	"context"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/pipeline/converse"
	"github.com/parley-voice/parley/pipeline/eot/classify"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/provider"
)

// openProviders lists the providers that an agent may name. One that needs an
// account is there where the operator set its key, or a server of its kind.
func (h *house) openProviders(ctx context.Context) error {
	accounts := h.config.Accounts
	if accounts.Fake == "" {
		var err error
		if h.fakes, err = fake.Start(ctx, "127.0.0.1:0", demo.Script()); err != nil {
			return err
		}
		accounts.Fake = h.fakes.Addr()
	}
	h.providers = accounts.Open()
	h.agent = &converse.Agent{
		Recognizers: h.providers.Recognizers, Models: h.providers.Models, Voices: h.providers.Voices,
		Guards: provider.Guards{Limits: h.config.ProviderLimits}, Opinions: h.config.Opinions, Log: h.log,
	}
	if h.config.ClassifierURL != "" {
		h.agent.Classifier = classify.New(h.config.ClassifierURL, h.config.ClassifierKey, 0, nil)
	}
	return nil
}
