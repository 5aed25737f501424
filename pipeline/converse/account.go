package converse

import (
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/book"
	"github.com/parley-voice/parley/pipeline/history"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/turn"
)

// greeted opens the account of the greeting.
func (s *talk) greeted() *book.Account {
	s.number++
	return &book.Account{Number: s.number - 1, T0: s.brief.AnsweredAt, Reason: "answered"}
}

// unheard opens the account of a caller's turn that the recognizer said nothing
// of.
func (s *talk) unheard() *book.Account {
	s.number++
	return &book.Account{
		Number: s.number - 1, Caller: true, T0: s.last.Voiced, Waited: s.last.Waited, Verdict: s.last.At,
		Estimated: s.last.Estimated, Reason: turn.RecognizerSilent,
	}
}

// committed opens the account of the caller's turn that a commits, or goes on
// with the one that was retracted.
func (s *talk) committed(a turn.Action) *book.Account {
	x, another := book.Committed(a, book.Caller{Last: s.last, Began: s.began, Answered: s.brief.AnsweredAt, Turn: s.number, Specs: s.specs}, s.current)
	if s.specs = 0; another {
		s.number++
	}
	return x
}

// tell passes a line on, without the numbers that the caller pressed.
func (s *talk) tell(l pipeline.Line) {
	l.Text = s.pressed.Hide(pipeline.Clean(l.Text))
	for i := range l.Words {
		l.Words[i].Text = s.pressed.Hide(pipeline.Clean(l.Words[i].Text))
	}
	s.outcome.Lines = append(s.outcome.Lines, l)
	if s.brief.Watch != nil {
		s.brief.Watch.Said(l)
	}
}

// tellCaller passes on what the caller said, once it is sure not to change.
func (s *talk) tellCaller() {
	if s.current != nil && s.current.Line != nil {
		s.tell(*s.current.Line)
		s.current.Line = nil
	}
}

// end closes the account of the turn and the line of the answer. whole tells
// that the answer was said to its end.
func (s *talk) end(ending pipeline.Ending, whole bool) {
	s.tellCaller()
	s.tellFiller(false)
	ran := time.Duration(0)
	if s.reply != nil {
		s.record(s.reply)
		s.tellAgent(s.reply.Utterance, whole, true)
		ran = s.reply.book.Took()
	}
	if s.current != nil {
		t := s.current.Turn(ending)
		t.Tools = ran
		s.outcome.Turns = append(s.outcome.Turns, t)
		if s.brief.Watch != nil {
			s.brief.Watch.Turned(t)
		}
	}
	s.current, s.reply = nil, nil
}

// tellAgent passes on what the caller heard of an utterance. Only that is
// remembered: what nobody heard was not said.
func (s *talk) tellAgent(u *mouth.Utterance, whole, remember bool) {
	text, words := u.Heard(whole)
	if text == "" {
		return
	}
	end := s.since(time.Now())
	start := min(end, max(0, s.since(u.Began())))
	for i := range words {
		words[i].Start += start
		words[i].End += start
	}
	if remember {
		s.history.Add(pipeline.Message{Role: pipeline.RoleAgent, Text: history.Heard(text, whole)})
	}
	s.tell(pipeline.Line{
		Role: pipeline.RoleAgent, Text: text, Start: start, End: end, Turn: max(0, s.number-1), Interrupted: !whole, Words: words,
	})
}

// tellFiller passes on what the caller heard of a filler. The model need not
// know of it.
func (s *talk) tellFiller(whole bool) {
	if s.filler != nil {
		s.tellAgent(s.filler, whole, false)
		s.filler = nil
	}
}

// close ends what the end of the call found open.
func (s *talk) close() {
	s.forget()
	s.undisclosed()
	if s.reply != nil || s.current != nil || s.filler != nil {
		ending := pipeline.Interrupted
		if s.outcome.Reason == pipeline.AgentError {
			ending = pipeline.Failed
		}
		s.end(ending, false)
	}
}
