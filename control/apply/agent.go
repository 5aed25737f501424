package apply

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/tools"
)

// draft returns the stored draft of the agent with the changes of the file.
func (a Agent) draft(ctx context.Context, q db.Querier, orgID string) (agents.Definition, error) {
	d := agents.Default()
	have, err := agents.Find(ctx, q, orgID, a.Name)
	switch {
	case err == nil:
		d = have.Draft
	case !errors.Is(err, agents.ErrUnknown):
		return d, err
	}
	a.applyTo(&d)
	return d, nil
}

// Definition returns the agent with defaults for the fields that the file lacks.
func (a Agent) Definition() agents.Definition {
	d := agents.Default()
	a.applyTo(&d)
	return d
}

// maxProbes is the maximum number of agents whose providers are tested at the same time.
const maxProbes = 8

// testedEngines are engines that probeProviders has tested.
type testedEngines struct {
	orgID   string
	engines pipeline.Engines
}

// probeProviders tests the providers of the agents that the file publishes. Agents with the same engines are tested
// once.
func probeProviders(ctx context.Context, pool *pgxpool.Pool, s Spec, o Options) (tested []testedEngines, err error) {
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, maxProbes)
	known := map[string]bool{}
	for _, org := range s.Organizations {
		id := o.ids[org.Name]
		for _, a := range org.Agents {
			if a.Published == nil || !*a.Published {
				continue
			}
			d, err := a.draft(ctx, pool, id)
			if err != nil {
				return nil, err
			}
			key := id + d.Speech.ASR.Key() + d.Speech.LLM.Key() + d.Speech.TTS.Key()
			if known[key] {
				continue
			}
			known[key] = true
			tested = append(tested, testedEngines{id, d.Speech})
			free <- struct{}{}
			running.Go(func() {
				defer func() { <-free }()
				o.Providers.Probe(ctx, id, d.Speech)
			})
		}
	}
	return tested, nil
}

// applyTo copies the fields that are not nil into a definition.
func (a Agent) applyTo(d *agents.Definition) {
	setIf(&d.Greeting, a.Greeting)
	setIf(&d.Prompt, a.Prompt)
	setIf(&d.Language, a.Language)
	setIf(&d.Voicemail, a.Voicemail)
	setIf(&d.VoicemailMessage, a.Message)
	setIf(&d.Recording, a.Recording)
	setIf(&d.MaxDurationS, a.MaxDurationS)
	setIf(&d.Limits, a.Limits)
	setIf(&d.Variables, a.Variables)
	setIf(&d.Pronunciation, a.Pronunciation)
	setIf(&d.Patience, a.Patience)
	if a.Tools != nil {
		d.Tools = nil
		for _, t := range *a.Tools {
			d.Tools = append(d.Tools, t.toAgentTool())
		}
	}
	if an := a.Analysis; an != nil {
		setIf(&d.Analysis.Summary, an.Summary)
		setIf(&d.Analysis.Success, an.Success)
		setIf(&d.Analysis.Sentiment, an.Sentiment)
		setIf(&d.Analysis.Fields, an.Fields)
	}
	if a.Speech != nil {
		setIf(&d.Speech.ASR, a.Speech.ASR)
		setIf(&d.Speech.LLM, a.Speech.LLM)
		setIf(&d.Speech.TTS, a.Speech.TTS)
	}
}

// toAgentTool returns the agent's tool. Headers are copied unchanged, because they may hold secrets.
func (t Tool) toAgentTool() agents.Tool {
	s := agents.Tool{Definition: tools.Definition{
		Type: t.Type, Description: t.Description, Destinations: t.Destinations, Name: t.Name, Parameters: t.Parameters.RawMessage,
		URL: t.URL, Method: t.Method, TimeoutS: t.TimeoutS, Filler: t.Filler,
	}}
	for name, value := range t.Headers {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[name] = string(value)
	}
	return s
}
