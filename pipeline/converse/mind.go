package converse

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/ear"
	"github.com/parley-voice/parley/pipeline/turn"
)

// think is the mind: it tells the machine what happens and does what it says,
// until the conversation is over.
func (s *talk) think(ctx context.Context, edges <-chan ear.Edge) {
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
			s.outcome.Reason = pipeline.TooLong
		case x := <-edges:
			s.edge(ctx, x)
		case r := <-s.listener.results:
			s.heard(ctx, r)
		case <-s.listener.opens:
			s.step(ctx, turn.Event{Kind: turn.Listens})
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
func (s *talk) ending() pipeline.Reason {
	switch s.leg.Cause() {
	case media.RemoteHangup:
		return pipeline.CallerHungUp
	case media.MediaTimeout, media.Expired: // the carrier is gone, whichever way it shows
		return pipeline.NoMedia
	case media.Transferred:
		return pipeline.HandedOver
	case media.Failure:
		return pipeline.AgentError
	default:
		return pipeline.Stopped
	}
}

func (s *talk) edge(ctx context.Context, x ear.Edge) {
	e := turn.Event{Kind: x.Kind, For: x.Loud}
	if x.Kind == turn.Voice {
		s.began, e.From = x, s.since(x.From)
	}
	if x.Kind == turn.Silence {
		s.last, e.From = x, s.since(x.From)
	}
	s.step(ctx, e)
}

func (s *talk) heard(ctx context.Context, h heard) {
	e := turn.Event{Kind: turn.Heard, Text: h.Text, Final: h.Final, Finalized: h.Finalized}
	if !h.zero.IsZero() {
		e.From = s.since(h.zero.Add(h.Start))
		s.unanswered(&e, h)
	}
	s.step(ctx, e)
}

// unanswered leaves out the words of a result that were answered already: a
// recognizer may go on with them in the same breath.
func (s *talk) unanswered(e *turn.Event, h heard) {
	at := func(w pipeline.Word) time.Duration { return s.since(h.zero.Add(w.Start)) }
	n := slices.IndexFunc(h.Words, func(w pipeline.Word) bool { return at(w) >= s.machine.Settled() })
	if n < 0 {
		return // all of them, or it tells no words
	}
	e.From = at(h.Words[n])
	if n == 0 {
		return // its text may be written better than its words
	}
	var texts []string
	for _, w := range h.Words[n:] {
		texts = append(texts, w.Text)
	}
	e.Text = strings.Join(texts, " ")
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
		s.end(pipeline.Answered, true)
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
			s.drop(pipeline.Interrupted)
		case turn.Fill:
			s.filler = s.notice(ctx, turn.Filler, canned.Filler).utterance
		case turn.Apologise:
			if a.Reason == turn.RecognizerSilent {
				s.listener.renew()
			}
			if s.current == nil && (a.Reason == turn.RecognizerSilent) {
				s.current = s.unheard()
			}
			s.excuse(ctx, pipeline.Failed, canned.Apology)
		case turn.Nudge:
			s.excuse(ctx, pipeline.Interrupted, canned.Nudge)
		case turn.Drop:
		case turn.Leave:
			s.outcome.Reason = pipeline.Reason(a.Reason)
		}
	}
}

// excuse says a canned line in place of whatever was being said.
func (s *talk) excuse(ctx context.Context, ending pipeline.Ending, what canned.Line) {
	s.drop(ending)
	s.reply = s.notice(ctx, turn.Notice, what)
}

func (s *talk) wake(at time.Duration) {
	s.timer.Stop()
	if at > 0 {
		s.timer.Reset(time.Until(s.brief.AnsweredAt.Add(at)))
	}
}

// commit ends the caller's turn and starts the answer.
func (s *talk) commit(ctx context.Context, a turn.Action) {
	s.current = s.committed(a)
	s.history.add(pipeline.Message{Role: pipeline.RoleCaller, Text: s.current.line.Text})
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
func (s *talk) drop(ending pipeline.Ending) {
	s.playout.drop(s.next + 1)
	if s.reply != nil {
		s.reply.cancel()
	}
	s.end(ending, false)
}
