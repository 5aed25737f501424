package conversation

import (
	"context"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/optout"
	"github.com/parley-voice/parley/pipeline/tools"
)

// acceptOptOuts enables the detection of opt-outs and adds the model's opt-out tool. It does nothing if the config
// has no Store.
func (e *ending) acceptOptOuts(english *optout.English) {
	s, o := e.s, e.s.config.OptOuts
	if o.Store == nil {
		return
	}
	e.optOut = optout.New(english, o.Key, o.Phrases)
	s.config.Tools = tools.Add(s.config.Tools, tools.OptOut(s.phraseText(phraseOptedOut), func(ctx context.Context) error {
		at := time.Now()
		s.report(ctx, update{do: func(ctx context.Context) { e.leave(ctx, phraseOptedOut, pipeline.AgentHungUp) }})
		return o.Store(context.WithoutCancel(ctx), pipeline.OptOut{Source: pipeline.OptOutTool, At: at})
	}))
}

// onKey handles a key. The opt-out key opts out if no other key follows within optout.KeyIsolation. During the
// disclosure, which names the key, it opts out at once.
func (e *ending) onKey(ctx context.Context, k rune) {
	s := e.s
	switch now := s.since(time.Now()); {
	case e.optOut == nil || !e.optOut.OnKey(k, now):
	case s.greeter.disclosure != nil && !s.greeter.disclosed:
		e.onOptOut(ctx, pipeline.OptOutKey, "")
	default:
		s.later(ctx, optout.KeyIsolation, func(ctx context.Context) {
			if e.optOut.IsKeyConfirmed(s.since(time.Now())) {
				e.onOptOut(ctx, pipeline.OptOutKey, "")
			}
		})
	}
}

// agentText returns the agent's recent words. The callee's line may echo them to the recognizer.
func (e *ending) agentText() string {
	text, _, _ := e.s.replies.heard()
	return e.s.config.Disclosure + " . " + text
}

// onWords looks for an opt-out in recognized words.
func (e *ending) onWords(ctx context.Context, text string, final bool) {
	if e.optOut == nil {
		return
	}
	if words, ok := e.optOut.OnTranscript(text, final, e.s.since(time.Now()), e.agentText()); ok {
		e.onOptOut(ctx, pipeline.OptOutSpeech, words)
	}
}

// onOptOut stores an opt-out, confirms it and leaves. A transfer or hangup in progress
// continues.
func (e *ending) onOptOut(ctx context.Context, from pipeline.OptOutSource, words string) {
	if e.leaving {
		return
	}
	e.storeOptOut(ctx, from, words)
	if e.transferring != nil || e.hangup != nil {
		return
	}
	s := e.s
	s.greeter.cancelDisclosure()
	s.replies.drop(pipeline.Interrupted)
	text := CallerLine(e.optOut.LastWords(), "")
	if from == pipeline.OptOutKey {
		text = CallerLine("", s.config.OptOuts.Key)
	}
	now := s.since(time.Now())
	s.record.addCallerText(text, now, now)
	e.leave(ctx, phraseOptedOut, pipeline.AgentHungUp)
}

// storeOptOut stores an opt-out even if the call ends. Talk returns only after the write.
func (e *ending) storeOptOut(ctx context.Context, from pipeline.OptOutSource, words string) {
	s, o := e.s, pipeline.OptOut{Source: from, Text: words, At: time.Now()}
	s.log.Info("the callee opted out of calls", "source", from)
	s.wg.Go(func() {
		if err := s.config.OptOuts.Store(context.WithoutCancel(ctx), o); err != nil {
			s.log.Error("failed to store the opt-out", "err", err)
		}
	})
}

// onHangup stores an opt-out that the callee requested with the last words or key before the hangup.
func (e *ending) onHangup(ctx context.Context) {
	if e.optOut == nil || e.leaving {
		return
	}
	if words, key, ok := e.optOut.Pending(e.agentText()); ok {
		from := pipeline.OptOutSpeech
		if key {
			from = pipeline.OptOutKey
		}
		e.storeOptOut(ctx, from, words)
	}
}
