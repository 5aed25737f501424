package converse

import (
	"context"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/party"
	"github.com/parley-voice/parley/pipeline/turn"
)

// A watch looks who answered. It belongs to the mind, but for the tone bank,
// which is the ear's.
type watch struct {
	*party.Watch
	bank  amd.Bank
	alarm <-chan time.Time // when the watch is to be woken
	owed  bool             // the message is due and is being made
	made  bool             // it was made, or cannot be
	text  string           // of it
	pcm   []int16          // of it; nil where it cannot be made
}

// frame is given every frame by the ear.
func (s *talk) frame(f media.Frame) {
	s.listener.Write(f)
	if s.watch == nil {
		return
	}
	signal, back := s.watch.bank.Frame(f)
	if signal == amd.NoSignal {
		return
	}
	e := amd.Event{Kind: amd.Tone, Signal: signal, From: s.since(time.Now().Add(-back))}
	select {
	case s.news <- news{do: func(ctx context.Context) { s.consider(ctx, e) }}:
	default: // the mind is far behind: a tone is worth less than the sound after it
	}
}

// begin prepares the greeting and sets the machines going.
func (s *talk) begin(ctx context.Context) {
	if s.brief.Disclosure != "" {
		s.opening = s.first(ctx, s.brief.Disclosure)
	} else if s.brief.Greeting != "" {
		s.reply = s.first(ctx, s.brief.Greeting)
	}
	if most := s.brief.MaxDuration; most > 0 {
		s.later(ctx, time.Until(s.brief.AnsweredAt.Add(most)), func(context.Context) { s.outcome.Reason = pipeline.TooLong })
	}
	s.act(ctx, s.machine.Start())
	s.consider(ctx, amd.Event{Kind: amd.Timer})
	if s.watch == nil && s.brief.Disclosure != "" {
		s.disclose(ctx, func() { s.toGreet(ctx) })
	}
}

// first prepares the agent's first words.
func (s *talk) first(ctx context.Context, text string) *reply {
	r := s.tellText(ctx, text)
	s.current = s.greeted()
	s.current.Of, s.current.Began = r.Utterance, r.began
	return r
}

// alarm tells when the watch is to be woken; nil for never.
func (s *talk) alarm() <-chan time.Time {
	if s.watch == nil {
		return nil
	}
	return s.watch.alarm
}

// overhear tells the watch what the turn machine was told.
func (s *talk) overhear(ctx context.Context, e turn.Event) {
	if s.watch == nil {
		s.aside.Hear(e, s.machine.State())
		return
	}
	switch e.Kind {
	case turn.Voice:
		s.consider(ctx, amd.Event{Kind: amd.Voice, From: e.From})
	case turn.Silence:
		s.consider(ctx, amd.Event{Kind: amd.Silence, From: e.From})
	case turn.Heard:
		s.order(ctx, s.watch.Heard(e.At, e.Text, e.Final))
	case turn.Audible:
		s.watch.Begins(e.At)
	case turn.Said:
		s.watch.Spoken(e.At)
	default:
	}
}

// consider tells the watch of an event, and does what it says.
func (s *talk) consider(ctx context.Context, e amd.Event) {
	if s.watch == nil {
		return
	}
	e.At = s.since(time.Now())
	s.order(ctx, s.watch.Step(e))
	s.watch.alarm = nil
	if due := s.watch.Due(); due > 0 {
		s.watch.alarm = time.After(time.Until(s.brief.AnsweredAt.Add(due)))
	}
}

func (s *talk) order(ctx context.Context, orders []party.Order) {
	for _, o := range orders {
		if s.out {
			return
		}
		switch o.Do {
		case party.Greet:
			s.disclose(ctx, func() { s.toGreet(ctx) })
		case party.Answer:
			s.disclose(ctx, func() { s.toAnswer(ctx) })
		case party.Hold:
			s.undisclosed()
			s.step(ctx, turn.Event{Kind: turn.Hold})
		case party.Prepare:
			s.compose(ctx)
		case party.Message:
			s.leaveMessage(ctx)
		case party.Ask:
			s.wg.Go(func() {
				e := party.Opinion(ctx, s.model, s.brief.Engines.LLM.Model, o.Text)
				s.report(ctx, news{do: func(ctx context.Context) { s.consider(ctx, e) }})
			})
		case party.Leave:
			s.undisclosed()
			s.unsaid()
			s.overheard()
			s.outcome.Reason = o.Reason
		}
	}
}

// toGreet has the greeting said. Its turn began with the end of what the party
// said, where it said something.
func (s *talk) toGreet(ctx context.Context) {
	if s.aside.Keys() {
		s.toAnswer(ctx)
		return
	}
	if c := s.current; c != nil && s.machine.State() == turn.Held && s.watch != nil {
		c.Commit, c.Reason = time.Now(), s.watch.Verdict().Evidence
		if !s.last.From.IsZero() {
			c.T0, c.Estimated = s.last.Voiced, s.last.Estimated
		}
		s.overheard()
	}
	if text := s.aside.Take(); text != "" {
		s.putAside(text)
	}
	s.step(ctx, turn.Event{Kind: turn.Floor, Text: turn.Greet})
}

// toAnswer has what the party said answered, in place of the greeting.
func (s *talk) toAnswer(ctx context.Context) {
	s.unsaid()
	s.step(ctx, turn.Event{Kind: turn.Floor})
}

// overheard passes on what was said before the agent spoke.
func (s *talk) overheard() {
	if text := s.watch.Take(); text != "" {
		s.putAside(text)
	}
}

// putAside passes on what was said and is not answered.
func (s *talk) putAside(text string) {
	from, to := s.since(s.began.From), s.since(s.last.From)
	s.history.Add(pipeline.Message{Role: pipeline.RoleCaller, Text: text})
	s.tell(pipeline.Line{Role: pipeline.RoleCaller, Text: text, Start: max(0, min(from, to)), End: max(0, to), Turn: max(0, s.number-1)})
}

// unsaid gives up a greeting of which nothing was heard.
func (s *talk) unsaid() {
	if s.reply != nil && s.reply.Played() == 0 && s.machine.State() == turn.Held {
		s.mouth.Drop(s.next + 1)
		s.reply.cancel()
		if s.reply = nil; s.opened {
			s.end(pipeline.Answered, true)
		}
		s.current = nil
	}
}

// compose makes the message, so that it can begin right after the beep.
func (s *talk) compose(ctx context.Context) {
	s.wg.Go(func() {
		text, pcm := s.brief.VoicemailMessage, []int16(nil)
		if text == "" {
			var err error
			if text, err = party.Compose(ctx, s.model, s.brief.Engines.LLM.Model, s.brief.Prompt); err != nil {
				s.log.Warn("message", "err", err)
			}
		}
		if text != "" {
			text = strings.TrimSpace(s.brief.Disclosure + " " + text)
			pcm = canned.Message(ctx, s.voice, s.style(), text, s.brief.Pronunciation)
		}
		s.report(ctx, news{do: func(ctx context.Context) {
			s.watch.made, s.watch.text, s.watch.pcm = true, text, pcm
			if s.watch.owed {
				s.leaveMessage(ctx)
			}
		}})
	})
}

// leaveMessage says the message from its beginning, and hangs up after it.
func (s *talk) leaveMessage(ctx context.Context) {
	if s.out {
		return
	}
	s.undisclosed()
	s.step(ctx, turn.Event{Kind: turn.Hold})
	s.unsaid()
	s.overheard()
	switch {
	case !s.watch.made:
		s.watch.owed = true
	case s.watch.pcm == nil:
		s.outcome.Reason = pipeline.VoicemailReached
	default:
		pcm := s.watch.pcm
		if s.reply != nil {
			s.drop(pipeline.Interrupted)
			pcm = append(make([]int16, media.FrameLen(s.leg.Rate())*2), pcm...) // a pause, lest the words run together
		}
		s.reply = s.recite(ctx, turn.Reply, s.watch.text, pcm)
		s.reply.book.Plan(pipeline.Then{Step: pipeline.Hangup, Reason: pipeline.VoicemailLeft})
	}
}
