package converse

import (
	"context"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/turn"
)

// saying is what the agent said just now, how many words of it were heard, and
// whether that is all of it.
func (s *talk) saying() (text string, words int, whole bool) {
	u := s.voiced()
	if u == nil {
		return "", 0, false
	}
	words, whole = u.HeardWords()
	return u.Saying(recent), words, whole
}

// voiced is what the caller hears, or heard last, of this turn; nil for nothing.
// A filler may never have got the floor.
func (s *talk) voiced() *mouth.Utterance {
	switch {
	case s.reply != nil && s.reply.Played() > 0:
		return s.reply.Utterance
	case s.filler != nil && s.filler.Played() > 0:
		return s.filler
	default:
		return nil
	}
}

// making begins an answer, makes it the turn's, or lets it be heard.
func (s *talk) making(ctx context.Context, a turn.Action) {
	switch {
	case a.Do == turn.Speculate:
		s.speculate(ctx, a.Text)
	case a.Do == turn.Commit:
		s.commit(ctx, a)
	case s.reply != nil:
		s.reply.release()
	}
}

// speculate begins the answer to what the caller may be about to have said. It
// is heard by nobody before the commit.
func (s *talk) speculate(ctx context.Context, text string) {
	s.forget()
	if s.limits.Reached(false) {
		return // nor is it begun at the commit
	}
	s.specs++
	s.spec = s.answer(ctx, pipeline.Message{Role: pipeline.RoleCaller, Text: text})
}

// forget gives up an answer that was begun early.
func (s *talk) forget() {
	if s.spec != nil {
		s.spec.cancel()
		s.spec = nil
	}
}

// soften lowers, stops and raises the agent's voice.
func (s *talk) soften(how turn.Do) {
	switch how {
	case turn.Duck:
		s.mouth.Duck(true)
	case turn.Pause:
		s.mouth.Pause(s.voiced().Break())
	case turn.Resume:
		s.mouth.Resume(s.voiced().Boundary())
	default:
		s.mouth.Duck(false)
	}
}
