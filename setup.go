package main

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/providers"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/sip/proxy"
)

// setupChecks implements live.Checks.
type setupChecks struct{ *server }

// Propose implements live.Checks.
func (s setupChecks) Propose(orgID string) agents.Definition {
	set, usable := s.providers.set(), map[string]endpoints.Endpoint{}
	maps.Copy(usable, set.Named)
	maps.Copy(usable, set.Organizations[orgID])
	chosen := demo.ChooseSpeech(usable, false)
	d := agents.Default()
	d.Greeting = "Hello, this is an automated assistant. How can I help you?"
	d.Prompt = "You answer questions of callers in one or two short sentences. If you do not know an answer, say so. Be brief and kind."
	d.Recording = true
	d.Speech.ASR.Provider, d.Speech.LLM.Provider, d.Speech.TTS.Provider = chosen.ASR, chosen.LLM, chosen.TTS
	return d
}

// Tested implements live.Checks. Providers without a result were not tested in the last hour.
func (s setupChecks) Tested(ctx context.Context, q db.Querier, orgID string, d agents.Definition) (bool, error) {
	e := d.Speech.For(orgID)
	stored, err := providers.ReadChecks(ctx, q, orgID, e)
	if err != nil {
		return false, err
	}
	for _, r := range provider.Newest(s.agents.providers.checker.Report(e), stored) {
		if r.At.IsZero() || r.Error != "" {
			return false, nil
		}
	}
	return true, nil
}

// askTimeout limits the wait for an answer to OPTIONS.
const askTimeout = 5 * time.Second

// Carrier implements live.Checks.
func (s setupChecks) Carrier(ctx context.Context, t media.Trunk, ask bool) (state, reason string) {
	if t.Register {
		for _, r := range s.ua.Registrations() {
			switch {
			case r.Username != t.Username || r.Proxy != t.Proxy:
			case r.Err != nil:
				return string(proxy.Down), "registration: " + r.Err.Error()
			case !r.Until.IsZero():
				return string(proxy.Up), ""
			}
		}
		return string(proxy.Unknown), ""
	}
	if !ask {
		return s.ua.TrunkStatus(t), ""
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.ua.Probe(ctx, t); err != nil {
		return string(proxy.Down), strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return string(proxy.Up), ""
}
