package converse

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/bridge"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/handover"
	"github.com/parley-voice/parley/pipeline/turn"
)

// parting is how long after the last word the agent hangs up: the end of it is
// still on its way.
const parting = 300 * time.Millisecond

// line is a canned line as a text, in English where there is none.
func (s *talk) line(what canned.Line) string {
	return cmp.Or(what.In(s.brief.Language), what.In(""))
}

// farewell says goodbye in place of an answer, and leaves.
func (s *talk) farewell(ctx context.Context, what canned.Line, why pipeline.Reason) *reply {
	r := s.tellText(ctx, s.line(what))
	r.book.Plan(pipeline.Then{Step: pipeline.Hangup, Reason: why})
	return r
}

// depart says goodbye because the service goes. Whoever hears a disclosure, or is
// on its way to somebody else, hears no goodbye.
func (s *talk) depart(ctx context.Context) {
	s.brief.Leave = nil
	switch {
	case s.out || s.parting != nil: // the agent is leaving
	case s.opening != nil || s.handed != nil:
		s.outcome.Reason = pipeline.Stopped
	default:
		s.drop(pipeline.Interrupted)
		s.part(ctx, canned.Goodbye, pipeline.Stopped)
	}
}

// record passes on what a reply had done: the model remembers it, and the
// transcript has it.
func (s *talk) record(r *reply) {
	messages, entries := r.book.Close()
	s.history.Add(messages...)
	for _, e := range entries {
		s.tell(pipeline.Line{
			Role: pipeline.RoleTool, Text: e.Text, Start: s.since(e.Began), End: s.since(e.Ended), Turn: max(0, s.number-1),
		})
	}
}

// silent ends an answer that did something and has nothing to say.
func (s *talk) silent(ctx context.Context) {
	then := s.reply.book.Then()
	s.step(ctx, turn.Event{Kind: turn.Audible, Text: turn.Reply})
	s.end(pipeline.Silent, true)
	if !s.after(ctx, then) {
		s.step(ctx, turn.Event{Kind: turn.Said, Text: turn.Reply})
	}
}

// after does what was to happen once the answer was heard. It tells whether the
// agent leaves.
func (s *talk) after(ctx context.Context, then []pipeline.Then) (leaves bool) {
	for _, t := range then {
		switch t.Step {
		case pipeline.Press:
			s.press(t.Keys)
		case pipeline.Hangup:
			s.leaving, s.parting = t.Reason, time.After(parting)
			return true
		case pipeline.Transfer:
			s.handOver(ctx, t.Number)
			return true
		}
	}
	return false
}

func (s *talk) press(keys string) {
	err := errors.New("the line cannot press keys")
	if pad, ok := s.leg.(media.Keypad); ok {
		err = pad.Press(keys)
	}
	if err != nil {
		s.log.Warn("keys", "err", err)
		s.history.Add(pipeline.Message{Role: pipeline.RoleNote, Text: "the keys were not pressed: " + pipeline.Clean(err.Error())})
	}
}

// A handed is what became of a handing over.
type handed struct {
	second media.Leg // to be joined; nil where the party's side does it
	err    error
}

// handOver has somebody else take the call. The conversation stands still until
// that is settled.
func (s *talk) handOver(ctx context.Context, number string) {
	s.outcome.Transfer = &pipeline.Handover{To: number}
	done := make(chan handed, 1)
	s.handed = done
	ringing, quiet := context.WithCancel(ctx)
	ring := s.utter(turn.Notice)
	s.wg.Go(func() { handover.Ring(ringing, s.mouth, ring) })
	s.wg.Go(func() {
		defer quiet()
		second, err := handover.Refer(ctx, s.leg, s.brief.Bridge, number)
		done <- handed{second, err}
	})
}

// handedOver is told what became of it. Where nobody took the call, the
// conversation goes on.
func (s *talk) handedOver(ctx context.Context, h handed) {
	s.handed = nil
	if h.err == nil {
		s.second, s.outcome.Reason = h.second, pipeline.HandedOver
		return
	}
	s.outcome.Transfer.At = time.Now()
	s.log.Warn("transfer", "err", h.err)
	s.history.Add(pipeline.Message{Role: pipeline.RoleNote, Text: "nobody took the call over; the caller is told so"})
	s.mouth.Drop(s.next + 1) // the ringing
	s.step(ctx, turn.Event{Kind: turn.Own})
	s.reply = s.tellText(ctx, s.line(canned.Unreached))
	s.reply.release()
}

// settle ends a handing over that the end of the call found open.
func (s *talk) settle() {
	t := s.outcome.Transfer
	if s.handed != nil {
		if h := <-s.handed; h.second != nil {
			_ = h.second.Hangup(media.LocalHangup) // nobody is left to talk to
		}
	}
	if t != nil && t.At.IsZero() {
		t.At, t.Answered, t.Bridged = time.Now(), s.outcome.Reason == pipeline.HandedOver, s.second != nil
	}
}

// join lets the party and whoever took the call over talk, until one of them
// hangs up, ctx ends or the call has lasted long enough.
func (s *talk) join(ctx context.Context) {
	if s.brief.MaxDuration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, s.brief.AnsweredAt.Add(s.brief.MaxDuration))
		defer cancel()
	}
	if _, err := bridge.Join(ctx, s.leg, s.second, nil); err != nil {
		s.log.Warn("bridge", "err", err)
	}
}
