package converse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/ear"
	"github.com/parley-voice/parley/pipeline/history"
	"github.com/parley-voice/parley/pipeline/listener"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/turnlog"
)

// think is the mind: it tells the machine what happens and does what it says,
// until the conversation is over.
func (s *talk) think(ctx context.Context, edges <-chan ear.Edge) {
	s.timer = time.NewTimer(time.Hour)
	defer s.timer.Stop()
	s.timer.Stop()
	s.begin(ctx)
	s.keys = s.leg.Digits()
	for s.outcome.Reason == "" {
		select {
		case <-ctx.Done():
			s.outcome.Reason = pipeline.EndedBy(s.leg.Cause())
		case <-s.brief.Leave:
			s.depart(ctx)
		case <-s.parting:
			s.outcome.Reason = s.leaving
		case h := <-s.handed:
			s.handedOver(ctx, h)
		case x := <-edges:
			s.edge(ctx, x)
		case r := <-s.listener.Results():
			s.heard(ctx, r)
		case mute := <-s.listener.Opens():
			s.step(ctx, turn.Event{Kind: turn.Listens, Mute: mute})
		case err := <-s.listener.Broke():
			s.outcome.Err = err
			s.step(ctx, turn.Event{Kind: turn.Deaf})
		case m := <-s.mouth.Marks():
			s.mark(ctx, m)
		case k, ok := <-s.keys:
			s.key(ctx, k, ok)
		case n := <-s.news:
			s.told(ctx, n)
		case <-s.timer.C:
			s.step(ctx, turn.Event{Kind: turn.Timer})
		case <-s.alarm():
			s.consider(ctx, amd.Event{Kind: amd.Timer})
		}
	}
}

func (s *talk) edge(ctx context.Context, x ear.Edge) {
	e := turn.Event{Kind: x.Kind, For: x.Loud}
	s.returns = x.Returns
	if x.Kind == turn.Voice {
		s.began, e.From = x, s.since(x.From)
	}
	if x.Kind == turn.Silence || x.Kind == turn.Lull {
		s.last, e.From = x, s.since(x.From)
		e.Pitch, e.Trail, e.Toned = x.Prosody.Fall, x.Prosody.Trail, x.Prosody.Known
	}
	s.step(ctx, e)
}

func (s *talk) heard(ctx context.Context, h listener.Heard) {
	e := turn.Event{Kind: turn.Heard, Text: h.Text, Final: h.Final, Finalized: h.Finalized, Unanswered: h.Unanswered, P: h.EndOfTurn}
	if !h.Zero.IsZero() {
		e.From, e.Until = max(1, s.since(h.Zero.Add(h.Start))), s.since(h.Zero.Add(h.End)) // 0 is unknown
		if text, begins, ok := h.From(s.settled()); ok {                                   // the rest was answered
			e.Text, e.From = text, max(1, s.since(begins))
		}
	}
	s.mayAsk(ctx, h.Text, h.Final)
	s.step(ctx, e)
}

// mark is told that an utterance became audible, or was said. Marks of a reply
// that was dropped meanwhile are of no account.
func (s *talk) mark(ctx context.Context, m mouth.Mark) {
	if s.opening != nil && m.Of == s.opening.Utterance {
		s.disclosing(ctx, m)
		return
	}
	if s.reply == nil || m.Of != s.reply.Utterance && m.Of != s.filler {
		return
	}
	e := turn.Event{Kind: turn.Audible, Text: m.Of.Kind}
	if m.Said {
		e.Kind, e.Saying = turn.Said, m.Of.Saying(all)
	}
	switch {
	case !m.Said && s.current != nil && s.current.Of == m.Of:
		s.current.Audible = m.At
	case m.Said && m.Of == s.reply.Utterance:
		then := s.reply.book.Then()
		s.end(pipeline.Answered, true)
		if s.after(ctx, then) {
			return
		}
	case m.Said:
		s.tellFiller(true)
	}
	s.step(ctx, e)
}

// key is told of a key that the caller pressed.
func (s *talk) key(ctx context.Context, k rune, ok bool) {
	if !ok {
		s.keys = nil // the leg ends
		return
	}
	s.pressed.Add(string(k))
	s.mayOptOut(ctx, k)
	s.step(ctx, turn.Event{Kind: turn.Key, Text: string(k)})
}

// told is told that the first sound of an answer is there, or that it broke.
func (s *talk) told(ctx context.Context, n news) {
	switch {
	case n.do != nil:
		n.do(ctx)
	case errors.Is(n.err, errSilent):
		if s.reply != nil && n.of == s.reply.Utterance {
			s.silent(ctx)
		}
	case n.err != nil:
		s.failed(ctx, n)
	case s.reply != nil && n.of == s.reply.Utterance, s.spec != nil && n.of == s.spec.Utterance:
		s.step(ctx, turn.Event{Kind: turn.Ready})
	}
}

func (s *talk) failed(ctx context.Context, f news) {
	if s.opening != nil && f.of == s.opening.Utterance {
		s.outcome.Reason, s.outcome.Err = pipeline.AgentError, fmt.Errorf("the disclosure: %w", f.err)
		return
	}
	if s.spec != nil && f.of == s.spec.Utterance {
		s.log.Info("answer begun early failed", "err", f.err) // it is begun again at the commit
		s.spec = nil
		s.step(ctx, turn.Event{Kind: turn.ReplyFail})
		return
	}
	if s.reply == nil || f.of != s.reply.Utterance {
		return
	}
	s.log.Warn("reply failed", "err", f.err)
	if s.outcome.Err = f.err; s.out {
		s.outcome.Reason = pipeline.AgentHungUp
	}
	s.step(ctx, turn.Event{Kind: turn.ReplyFail})
}

// recent is how far back the machine is told what the agent said.
const recent = 4 * time.Second

// all is as far back as speech goes.
const all = time.Hour

func (s *talk) step(ctx context.Context, e turn.Event) {
	if s.handed != nil || s.parting != nil || s.out {
		return // the agent is leaving
	}
	e.At = s.since(time.Now())
	if e.Saying == "" && e.Kind != turn.Timer {
		e.Saying, e.Words, e.Whole = s.saying()
	}
	e.Returns = s.returns
	before, acts := s.machine.State(), s.machine.Step(e)
	shown, did := turnlog.Hush(&s.pressed, e, acts)
	s.log.Debug("turn", "event", shown, "from", before, "to", s.machine.State(), "do", did)
	s.journal.Write(shown, did)
	turnlog.Tell(s.brief.Watch, before, s.machine.State(), shown, s.number)
	s.act(ctx, acts)
	s.overhear(ctx, e)
}

func (s *talk) act(ctx context.Context, acts []turn.Action) {
	for _, a := range acts {
		switch a.Do {
		case turn.Finalize, turn.Reopen:
			s.recognise(a.Do)
		case turn.SetTimer:
			s.wake(a.At)
		case turn.Judge:
			s.judge(ctx, a.Text)
		case turn.Speculate, turn.Commit, turn.Release:
			s.making(ctx, a)
		case turn.Duck, turn.Unduck, turn.Pause, turn.Resume:
			s.soften(a.Do)
		case turn.Note:
			s.tell(pipeline.Line{Role: pipeline.RoleCaller, Text: a.Text, Start: a.From, End: a.From, Turn: max(0, s.number-1)})
		case turn.Retract:
			s.retract()
		case turn.Yield:
			s.drop(pipeline.Interrupted)
		case turn.Fill:
			s.filler = s.notice(ctx, turn.Filler, canned.Filler).Utterance
		case turn.Apologise:
			s.apologise(ctx, a.Reason)
		case turn.Nudge:
			s.excuse(ctx, pipeline.Interrupted, canned.Nudge)
		case turn.Drop:
			s.forget()
		case turn.Leave:
			s.outcome.Reason = pipeline.Reason(a.Reason)
		}
	}
}

func (s *talk) apologise(ctx context.Context, reason string) {
	if reason == turn.RecognizerSilent {
		s.listener.Renew(s.settled())
		if s.current == nil {
			s.current = s.unheard()
		}
	}
	s.excuse(ctx, pipeline.Failed, canned.Apology)
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
	said, made := history.Said(a.Text, a.Keys), a.Held && s.spec != nil
	switch {
	case s.limits.Reached(made):
		s.forget()
		s.reply = s.farewell(ctx, canned.Goodbye, pipeline.AgentHungUp)
	case made:
		s.reply, s.spec = s.spec, nil
	default:
		s.forget()
		s.reply = s.answer(ctx, said...)
	}
	s.limits.Answers++
	s.reply.agree()
	s.history.Commit(said...)
	s.current.Of, s.current.Ran, s.current.Began = s.reply.Utterance, s.reply.book.Within, s.reply.began
}

// retract drops an answer of which nothing was heard, or next to nothing: the
// caller goes on. The model is not told what little there was.
func (s *talk) retract() {
	s.mouth.Drop(s.next + 1)
	s.tellFiller(false)
	if s.reply != nil {
		s.reply.cancel()
		s.tellAgent(s.reply.Utterance, false, false)
	}
	s.history.Retract()
	if s.reply != nil {
		s.record(s.reply) // lest it be done again
	}
	s.reply = nil
}

// drop stops the agent's speech; what was heard of it is kept.
func (s *talk) drop(ending pipeline.Ending) {
	s.mouth.Drop(s.next + 1)
	s.forget()
	if s.reply != nil {
		s.reply.cancel()
	}
	s.end(ending, false)
}
