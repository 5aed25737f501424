package converse

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/turn"
)

// An account is the book that is kept of one turn until it ends.
type account struct {
	number    int
	of        *mouth.Utterance // the answer
	line      *pipeline.Line   // what the caller said; nil once it is told
	caller    bool             // there is a caller's speech: not the greeting
	t0        time.Time        // arrival of the caller's last voiced sample; of the greeting, the answer
	waited    time.Duration
	verdict   time.Time
	usable    time.Time
	judged    time.Time // the classifier had answered, where it was waited for
	commit    time.Time
	audible   time.Time
	estimated bool
	reason    string
	fragments int
	specs     int             // answers begun before the commit
	began     time.Time       // when the answer was asked for
	first     []pipeline.Span // of the first fragment, where there are more
}

// spans are the phases that ran. Each mark is held to come no earlier than the
// one before it, so that the phases add up to the turn.
func (a *account) spans() []pipeline.Span {
	var token, ready time.Time
	if a.of != nil {
		token, ready, _, _ = a.of.Timing()
	}
	phases := []struct {
		phase pipeline.Phase
		at    time.Time
		runs  bool
	}{
		{pipeline.PhaseJitter, a.t0.Add(a.waited), a.caller},
		{pipeline.PhaseVAD, a.verdict, a.caller},
		{pipeline.PhaseASR, a.usable, !a.usable.IsZero()},
		{pipeline.PhaseClassifier, a.judged, !a.judged.IsZero()},
		{pipeline.PhaseEOUWait, a.commit, !a.commit.IsZero()},
		{pipeline.PhaseLLM, token, a.caller && !token.IsZero()},
		{pipeline.PhaseTTS, ready, !ready.IsZero()},
		{pipeline.PhaseOut, a.audible, !a.audible.IsZero()},
	}
	var spans []pipeline.Span
	last := a.t0
	for _, p := range phases {
		if !p.runs {
			continue
		}
		at := p.at
		if at.Before(last) {
			at = last
		}
		spans = append(spans, pipeline.Span{Phase: p.phase, For: at.Sub(last)})
		last = at
	}
	return spans
}

// phases are those of the first fragment up to its commit, and from there on
// those of the answer that was heard.
func (a *account) phases() []pipeline.Span {
	own := a.spans()
	if a.first == nil {
		return own
	}
	var spans []pipeline.Span
	for _, s := range own {
		at := slices.IndexFunc(a.first, func(f pipeline.Span) bool { return f.Phase == s.Phase })
		if at >= 0 && s.Phase != pipeline.PhaseLLM && s.Phase != pipeline.PhaseTTS && s.Phase != pipeline.PhaseOut {
			s = a.first[at]
		}
		spans = append(spans, s)
	}
	return spans
}

func (a *account) turn(ending pipeline.Ending) pipeline.Turn {
	t := pipeline.Turn{
		Number: a.number, Spans: a.phases(), Ending: ending, Reason: a.reason,
		Interrupted: ending == pipeline.Interrupted, Estimated: a.estimated,
		Raw: map[string]time.Duration{},
	}
	t.Speculations, t.Saved = a.specs, a.saved()
	if a.fragments > 1 {
		t.MergedFrom = a.fragments
		for _, s := range a.spans() {
			t.Raw["last_fragment_"+string(s.Phase)] = s.For
		}
	}
	if a.of != nil {
		_, _, chars, usage := a.of.Timing()
		t.Chars, t.TokensIn, t.TokensOut = chars, usage.PromptTokens, usage.CompletionTokens
		t.Raw["answer_played_ms"] = mouth.Span(a.of.Rate, a.of.Played())
		if dry := a.of.Dry(); dry > 0 {
			t.Raw["underrun_ms"] = dry
		}
	}
	return t
}

// saved is how much later the caller would have heard the answer, had it been
// asked for at the commit only.
func (a *account) saved() time.Duration {
	if a.of == nil || a.commit.IsZero() || !a.began.Before(a.commit) {
		return 0
	}
	_, ready, _, _ := a.of.Timing()
	if ready.IsZero() {
		return 0
	}
	last := a.commit
	if ready.After(last) {
		last = ready
	}
	return a.commit.Add(ready.Sub(a.began)).Sub(last)
}

// greeted opens the account of the greeting.
func (s *talk) greeted() *account {
	s.number++
	return &account{number: s.number - 1, t0: s.brief.AnsweredAt, reason: "answered"}
}

// unheard opens the account of a caller's turn that the recognizer said nothing
// of.
func (s *talk) unheard() *account {
	s.number++
	return &account{
		number: s.number - 1, caller: true, t0: s.last.From, waited: s.last.Waited, verdict: s.last.At,
		estimated: s.last.Estimated, reason: turn.RecognizerSilent,
	}
}

// committed opens the account of the caller's turn that a commits, or goes on
// with the one that was retracted.
func (s *talk) committed(a turn.Action) *account {
	now := time.Now()
	x := &account{
		caller: true, t0: s.last.From, waited: s.last.Waited, verdict: s.last.At,
		usable: s.brief.AnsweredAt.Add(a.Usable), commit: now,
		estimated: s.last.Estimated, reason: a.Reason,
	}
	if a.Judged > 0 {
		x.judged = s.brief.AnsweredAt.Add(a.Judged)
	}
	x.specs, s.specs = s.specs, 0
	if s.since(s.last.From) != a.From { // the energy gate missed the speech
		x.t0, x.waited, x.verdict, x.estimated = s.brief.AnsweredAt.Add(a.From), 0, x.usable, true
	}
	from := s.began.From
	if a.Text == "" { // there are but keys
		from = x.t0
	}
	if before := s.current; before != nil && a.Fragments > 1 {
		x.number, x.fragments, x.first = before.number, a.Fragments, before.first
		if x.first == nil {
			x.first = before.spans()
		}
		if before.line != nil {
			from = s.brief.AnsweredAt.Add(before.line.Start)
		}
	} else {
		x.number = s.number
		s.number++
	}
	if a.Told {
		return x
	}
	x.line = &pipeline.Line{
		Role: pipeline.RoleCaller, Text: spoken(a), Turn: x.number,
		Start: min(s.since(from), s.since(x.t0)), End: s.since(x.t0),
	}
	return x
}

// tell passes a line on.
func (s *talk) tell(l pipeline.Line) {
	l.Text = pipeline.Clean(l.Text)
	for i := range l.Words {
		l.Words[i].Text = pipeline.Clean(l.Words[i].Text)
	}
	s.outcome.Lines = append(s.outcome.Lines, l)
	if s.brief.Watch != nil {
		s.brief.Watch.Said(l)
	}
}

// tellCaller passes on what the caller said, once it is sure not to change.
func (s *talk) tellCaller() {
	if s.current != nil && s.current.line != nil {
		s.tell(*s.current.line)
		s.current.line = nil
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
		_, _, _, usage := s.reply.Timing()
		s.limits.tokens += usage.PromptTokens + usage.CompletionTokens
	}
	if s.current != nil {
		t := s.current.turn(ending)
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
		s.history.Add(pipeline.Message{Role: pipeline.RoleAgent, Text: cutOff(text, whole)})
	}
	s.tell(pipeline.Line{
		Role: pipeline.RoleAgent, Text: text, Start: start, End: end, Turn: max(0, s.number-1), Interrupted: !whole, Words: words,
	})
}

// cutOff marks for the model where the caller cut the agent off.
func cutOff(text string, whole bool) string {
	if whole {
		return text
	}
	return text + " …"
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
	if s.reply != nil || s.current != nil || s.filler != nil {
		ending := pipeline.Interrupted
		if s.outcome.Reason == pipeline.AgentError {
			ending = pipeline.Failed
		}
		s.end(ending, false)
	}
}
