package pipeline

import (
	"context"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/turn"
)

// think is the mind: it tells the machine what happens and does what it says,
// until the conversation is over.
func (s *talk) think(ctx context.Context, edges <-chan edge) {
	s.timer = time.NewTimer(time.Hour)
	defer s.timer.Stop()
	var limit <-chan time.Time
	if s.brief.MaxDuration > 0 {
		t := time.NewTimer(time.Until(s.brief.AnsweredAt.Add(s.brief.MaxDuration)))
		defer t.Stop()
		limit = t.C
	}
	s.timer.Stop()
	if s.brief.Greeting != "" {
		s.current = s.greeted()
		s.reply = s.greet(ctx)
		s.current.of = s.reply.utterance
	}
	s.act(ctx, s.machine.Start())
	for s.outcome.Reason == "" {
		select {
		case <-ctx.Done():
			s.outcome.Reason = s.ending()
		case <-limit:
			s.outcome.Reason = TooLong
		case x := <-edges:
			s.edge(ctx, x)
		case r := <-s.listener.results:
			s.step(ctx, turn.Event{Kind: turn.Heard, Text: r.Text, Final: r.Final, Finalized: r.Finalized})
		case err := <-s.listener.broke:
			s.outcome.Err = err
			s.step(ctx, turn.Event{Kind: turn.Deaf})
		case m := <-s.playout.marks:
			s.mark(ctx, m)
		case f := <-s.failures:
			s.failed(ctx, f)
		case <-s.timer.C:
			s.step(ctx, turn.Event{Kind: turn.Timer})
		}
	}
}

// ending is why the context ended: the party left, or we were told to stop.
func (s *talk) ending() Reason {
	switch s.leg.Cause() {
	case media.RemoteHangup:
		return CallerHungUp
	case media.MediaTimeout:
		return NoMedia
	case media.Failure:
		return AgentError
	default:
		return Stopped
	}
}

func (s *talk) edge(ctx context.Context, x edge) {
	e := turn.Event{Kind: turn.Voice, From: s.since(x.from)}
	if x.voice {
		s.began = x
	} else {
		e.Kind = turn.Silence
		s.last = x
	}
	s.step(ctx, e)
}

// mark is told that an utterance became audible, or was said. Marks of a reply
// that was dropped meanwhile are of no account.
func (s *talk) mark(ctx context.Context, m mark) {
	if s.reply == nil || m.of != s.reply.utterance && m.of != s.filler {
		return
	}
	if !m.said {
		if s.current != nil && s.current.of == m.of {
			s.current.audible = m.at
			s.tellCaller()
		}
		s.step(ctx, turn.Event{Kind: turn.Audible, Text: m.of.kind})
		return
	}
	if m.of == s.reply.utterance {
		s.end(Answered, true)
	} else {
		s.tellFiller(true)
	}
	s.step(ctx, turn.Event{Kind: turn.Said, Text: m.of.kind})
}

func (s *talk) failed(ctx context.Context, f failure) {
	if s.reply == nil || f.of != s.reply.utterance {
		return
	}
	s.log.Warn("reply failed", "err", f.err)
	s.outcome.Err = f.err
	s.step(ctx, turn.Event{Kind: turn.ReplyFail})
}

func (s *talk) step(ctx context.Context, e turn.Event) {
	e.At = s.since(time.Now())
	before := s.machine.State()
	acts := s.machine.Step(e)
	s.log.Debug("turn", "event", e, "from", before, "to", s.machine.State(), "do", acts)
	s.act(ctx, acts)
}

func (s *talk) act(ctx context.Context, acts []turn.Action) {
	for _, a := range acts {
		switch a.Do {
		case turn.Finalize:
			s.listener.finalize()
		case turn.SetTimer:
			s.wake(a.At)
		case turn.Commit:
			s.commit(ctx, a)
		case turn.Retract:
			s.retract()
		case turn.Yield:
			s.drop(Interrupted)
		case turn.Fill:
			s.filler = s.notice(ctx, turn.Filler, fillerText).utterance
		case turn.Apologise:
			if a.Reason == turn.RecognizerSilent {
				s.listener.renew()
			}
			s.excuse(ctx, Failed, apologyText)
		case turn.Nudge:
			s.excuse(ctx, Interrupted, nudgeText)
		case turn.Drop:
		case turn.Leave:
			s.outcome.Reason = Reason(a.Reason)
		}
	}
}

// excuse says a canned line in place of whatever was being said.
func (s *talk) excuse(ctx context.Context, ending Ending, text string) {
	s.drop(ending)
	s.reply = s.notice(ctx, turn.Notice, text)
}

func (s *talk) wake(at time.Duration) {
	s.timer.Stop()
	if at > 0 {
		s.timer.Reset(time.Until(s.brief.AnsweredAt.Add(at)))
	}
}

// commit ends the caller's turn and starts the answer.
func (s *talk) commit(ctx context.Context, a turn.Action) {
	s.current = s.heard(a)
	s.history.add(*s.current.line)
	s.reply = s.answer(ctx)
	s.current.of = s.reply.utterance
}

// retract drops an answer that nobody heard: the caller goes on.
func (s *talk) retract() {
	if s.reply != nil {
		s.reply.cancel()
	}
	s.reply = nil
	s.playout.drop(s.next + 1)
	s.tellFiller(false)
	s.history.retract()
}

// drop stops the agent's speech; what was heard of it is kept.
func (s *talk) drop(ending Ending) {
	s.playout.drop(s.next + 1)
	if s.reply != nil {
		s.reply.cancel()
	}
	s.end(ending, false)
}
