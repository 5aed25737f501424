package converse

import (
	"context"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/history"
	"github.com/parley-voice/parley/pipeline/optout"
	"github.com/parley-voice/parley/pipeline/tools"
)

// goodbyeTime bounds how long somebody is kept for a goodbye.
const goodbyeTime = 12 * time.Second

// optsOut lets the party have itself not called again, where somebody keeps that.
func (s *talk) optsOut() {
	o := s.brief.OptOuts
	if o.Keep == nil {
		return
	}
	s.optout = optout.New(&s.agent.english, o.Key, o.Phrases)
	s.brief.Tools = tools.Add(s.brief.Tools, tools.OptOut(s.line(canned.OptedOut), func(ctx context.Context) error {
		at := time.Now()
		s.report(ctx, news{do: func(ctx context.Context) { s.part(ctx, canned.OptedOut, pipeline.AgentHungUp) }})
		return o.Keep(context.WithoutCancel(ctx), pipeline.OptOut{Source: pipeline.OptOutTool, At: at})
	}))
}

// mayOptOut is told of a key, which counts once it was alone for a while; at once
// while the disclosure names it.
func (s *talk) mayOptOut(ctx context.Context, k rune) {
	switch now := s.since(time.Now()); {
	case s.optout == nil || !s.optout.Key(k, now):
	case s.opening != nil && !s.opened:
		s.optOut(ctx, pipeline.OptOutKey, "")
	default:
		s.later(ctx, optout.Apart, func(ctx context.Context) {
			if s.optout.Alone(s.since(time.Now())) {
				s.optOut(ctx, pipeline.OptOutKey, "")
			}
		})
	}
}

// agentSaid is what a line may return of the agent's own speech.
func (s *talk) agentSaid() string {
	text, _, _ := s.saying()
	return s.brief.Disclosure + " . " + text
}

// mayAsk is told what was understood.
func (s *talk) mayAsk(ctx context.Context, text string, final bool) {
	if s.optout == nil {
		return
	}
	if words, ok := s.optout.Heard(text, final, s.since(time.Now()), s.agentSaid()); ok {
		s.optOut(ctx, pipeline.OptOutSpeech, words)
	}
}

// optOut keeps at once that the party asked not to be called again, says so, and
// leaves. Somebody who is being handed over is not kept from it.
func (s *talk) optOut(ctx context.Context, from pipeline.OptOutSource, words string) {
	if s.out {
		return
	}
	s.keepOptOut(ctx, from, words)
	if s.handed != nil || s.parting != nil {
		return
	}
	s.undisclosed()
	s.drop(pipeline.Interrupted)
	said, keys := s.optout.Said(), ""
	if from == pipeline.OptOutKey {
		said, keys = "", s.brief.OptOuts.Key
	}
	now := s.since(time.Now())
	s.tell(pipeline.Line{Role: pipeline.RoleCaller, Text: history.Spoken(said, keys), Start: now, End: now, Turn: max(0, s.number-1)})
	s.part(ctx, canned.OptedOut, pipeline.AgentHungUp)
}

// keepOptOut is not given up with the call: the conversation is over once it is
// kept.
func (s *talk) keepOptOut(ctx context.Context, from pipeline.OptOutSource, words string) {
	o := pipeline.OptOut{Source: from, Said: words, At: time.Now()}
	s.log.Info("the party asked not to be called again", "source", from)
	s.wg.Go(func() {
		if err := s.brief.OptOuts.Keep(context.WithoutCancel(ctx), o); err != nil {
			s.log.Error("an opt-out is not kept", "err", err)
		}
	})
}

// part says goodbye, whatever the party does meanwhile, and leaves. What the agent
// is saying, where it noticed itself, is said to its end.
func (s *talk) part(ctx context.Context, what canned.Line, why pipeline.Reason) {
	if s.out {
		return
	}
	s.out = true
	s.later(ctx, goodbyeTime, func(context.Context) { s.outcome.Reason = why })
	s.mouth.Resume(-1)
	if s.reply == nil {
		s.reply = s.farewell(ctx, what, why)
	}
	s.reply.release()
}

// leftSaying keeps what the party asked with its last breath.
func (s *talk) leftSaying(ctx context.Context) {
	if s.optout == nil || s.out {
		return
	}
	if words, key, ok := s.optout.Left(s.agentSaid()); ok {
		from := pipeline.OptOutSpeech
		if key {
			from = pipeline.OptOutKey
		}
		s.keepOptOut(ctx, from, words)
	}
}
