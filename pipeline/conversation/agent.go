// Package conversation runs the conversation of one call: it passes the leg's audio to
// a recognizer, asks a model for each reply, speaks it with a voice, and records what
// the caller heard and how long each phase of a turn took.
package conversation

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/answering"
	"github.com/parley-voice/parley/pipeline/eot/remote"
	"github.com/parley-voice/parley/pipeline/optout"
	"github.com/parley-voice/parley/pipeline/playout"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/turn/turnlog"
)

// An Agent holds conversations. Its fields are set once; one Agent serves all calls.
type Agent struct {
	Clients provider.ClientSource
	Policy  turn.Policy // the zero value means turn.DefaultPolicy
	// Guards limit requests to providers and use the fallbacks.
	Guards provider.Guards
	// OpenTurnLog opens the turn log of a call, which Talk closes; nil disables it.
	OpenTurnLog func(callID string) (io.WriteCloser, error)
	// Classifier judges whether a caller has finished; nil disables it.
	Classifier Classifier
	// Opinions lets the model judge who answered if the detection is uncertain.
	Opinions bool
	// OnTest receives the usage of each Chat and Sample, which belongs to no call; nil ignores it.
	OnTest func(usage []pipeline.EngineUsage)
	Log    *slog.Logger

	phrases atomic.Pointer[phraseCache] // nil means empty
	english optout.English
}

// Check returns an error if e names a provider that the agent does not have.
func (a *Agent) Check(e pipeline.Engines) error { return a.Clients.Current().Check(e) }

// Model returns the model of an engine for use outside calls. The meter receives its usage; it may be nil.
func (a *Agent) Model(e pipeline.Engine, meter *pipeline.UsageMeter) (pipeline.Model, error) {
	clients := a.Clients.Current()
	if err := clients.CheckModel(e); err != nil {
		return nil, err
	}
	return a.Guards.BackgroundModel(clients, e, meter), nil
}

// endTest reports the usage of a test.
func (a *Agent) endTest(meter *pipeline.UsageMeter) {
	if usage := meter.Total(); a.OnTest != nil && len(usage) > 0 {
		a.OnTest(usage)
	}
}

// ForgetPhrases drops the synthesized phrases. Call it after the clients of voices have changed. Calls
// in progress keep their phrases.
func (a *Agent) ForgetPhrases() { a.phrases.Store(&phraseCache{}) }

// currentPhrases returns the cache of a new call.
func (a *Agent) currentPhrases() *phraseCache {
	a.phrases.CompareAndSwap(nil, &phraseCache{})
	return a.phrases.Load()
}

// Talk holds the conversation on leg until the leg ends, ctx is done or the agent leaves.
// It then hangs up and returns when all its goroutines have ended. The error reports an
// invalid config; failures during the call are in the Outcome.
func (a *Agent) Talk(ctx context.Context, leg media.Leg, config pipeline.SessionConfig) (pipeline.Outcome, error) {
	s, err := a.newSession(leg, config)
	if err != nil {
		return pipeline.Outcome{Reason: pipeline.AgentError, Err: err}, errors.Join(err, leg.Hangup(media.Failure))
	}
	defer s.turnLog.Close()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	s.run(running, cancel)
	if s.ending.second != nil {
		s.ending.join(ctx)
	}
	return s.outcome(), nil
}

func (a *Agent) newSession(leg media.Leg, config pipeline.SessionConfig) (*session, error) {
	phrases := a.currentPhrases() // read before the clients, so that a new cache does not receive phrases of an old voice
	clients := a.Clients.Current()
	if err := clients.Check(config.Engines); err != nil {
		return nil, err
	}
	config.Engines = clients.Resolve(config.Engines)
	if config.AnsweredAt.IsZero() {
		config.AnsweredAt = time.Now()
	}
	policy, greets := a.policy(config), config.Greeting != ""
	meter := &pipeline.UsageMeter{}
	c := &call{
		leg: leg, config: config, log: cmp.Or(a.Log, slog.New(slog.DiscardHandler)).With("call", config.CallID),
		model: a.Guards.Model(clients, config.Engines.LLM, meter), voice: a.Guards.Voice(clients, config.Engines.TTS, meter),
		usage: meter, updates: make(chan update, 16),
	}
	player := playout.New()
	speaker, record := &speaker{call: c, player: player, phrases: phrases}, &record{call: c}
	s := &session{
		call: c, player: player, speaker: speaker, record: record, classifier: a.Classifier,
		replies: &replies{call: c, speaker: speaker, record: record, limits: newCallLimits(config.Limits, meter)},
		transcriber: newTranscriber(
			a.Guards.Recognizer(clients, config.Engines.ASR, meter),
			pipeline.Stream{Rate: leg.Rate(), Model: config.Engines.ASR.Model, Language: config.Language}, c.log,
		),
		machine: turn.New(policy, greets),
	}
	s.greeter.s, s.ending.s = s, s
	s.ending.acceptOptOuts(&a.english)
	if _, ok := leg.(media.Keypad); !ok {
		c.config.Tools = tools.WithoutKeys(c.config.Tools)
	}
	var err error
	if s.replies.tools, err = tools.NewSet(c.config.Tools); err != nil {
		return nil, err
	}
	if config.Voicemail != "" {
		s.greeter.detector = &detector{Monitor: answering.New(config.Voicemail, a.Opinions)}
	}
	if a.OpenTurnLog != nil {
		to, err := a.OpenTurnLog(config.CallID)
		if err != nil {
			c.log.Warn("failed to open the turn log", "err", err) // the call continues without a turn log
		} else {
			s.turnLog = turnlog.New(to, c.log, policy, greets)
		}
	}
	return s, nil
}

func (a *Agent) policy(config pipeline.SessionConfig) turn.Policy {
	p := a.Policy
	if p == (turn.Policy{}) {
		p = turn.DefaultPolicy()
	}
	p.Language, p.Held = config.Language, config.Voicemail != "" || config.Disclosure != ""
	switch config.Patience {
	case pipeline.Balanced: // the default
	case pipeline.Quick:
		p.Waits = turn.QuickWaits()
	case pipeline.Careful:
		p.Waits = turn.CarefulWaits()
	}
	if a.Classifier != nil {
		p.Classifier = cmp.Or(p.Classifier, remote.Timeout)
	}
	return p
}
