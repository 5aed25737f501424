package conversation

import (
	"slices"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/playout"
)

// An account collects the times of one turn, from the caller's last voiced sample to the
// agent's first audible packet.
type account struct {
	Number int
	Of     *playout.Utterance // the agent's speech in this turn; nil if there is none yet
	// Ran returns how long the tools of the answer ran between two times; nil if there are none.
	Ran       func(from, to time.Time) time.Duration
	Line      *pipeline.Line // transcript line of the caller; nil once it is recorded
	Caller    bool           // the caller spoke; false in the turn of the greeting
	T0        time.Time      // when the caller's last voiced sample arrived; for the greeting, when the call was answered
	Waited    time.Duration  // time in the jitter buffer after T0
	Verdict   time.Time      // when the voice activity detector reported the end of speech
	Usable    time.Time      // when the transcript was complete
	Judged    time.Time      // when the classifier answered; zero if the commit did not wait for it
	Commit    time.Time      // when the turn machine decided that the turn has ended
	Audible   time.Time      // when the first audible packet of the agent was sent; zero until then
	Disclosed time.Duration  // length of the disclosure, which does not count as response time
	Estimated bool
	Reason    string
	Fragments int
	Specs     int             // number of answers prepared before the commit
	Began     time.Time       // when the answer was requested
	First     []pipeline.Span // phases of the first fragment of the turn, if there are several
}

// Spans returns the phases that took place. A phase that would end before it begins has the length 0, so the phases
// add up to the turn.
func (a *account) Spans() []pipeline.Span {
	var token, ready time.Time
	if a.Of != nil {
		token, ready, _, _ = a.Of.Timing()
	}
	phases := []struct {
		phase pipeline.Phase
		at    time.Time
		runs  bool
	}{
		{pipeline.PhaseJitter, a.T0.Add(a.Waited), a.Caller},
		{pipeline.PhaseVAD, a.Verdict, a.Caller},
		{pipeline.PhaseASR, a.Usable, !a.Usable.IsZero()},
		{pipeline.PhaseClassifier, a.Judged, !a.Judged.IsZero()},
		{pipeline.PhaseEOUWait, a.Commit, !a.Commit.IsZero()},
		{pipeline.PhaseLLM, token, a.Caller && !token.IsZero()},
		{pipeline.PhaseTTS, ready, !ready.IsZero()},
		{pipeline.PhaseOut, a.Audible, !a.Audible.IsZero()},
	}
	var spans []pipeline.Span
	last := a.T0
	for _, p := range phases {
		if !p.runs {
			continue
		}
		at := p.at
		if at.Before(last) {
			at = last
		}
		took, ran := at.Sub(last), time.Duration(0)
		if p.phase == pipeline.PhaseLLM && a.Ran != nil {
			ran = a.Ran(last, at)
		}
		spans = append(spans, pipeline.Span{Phase: p.phase, For: took - ran})
		if ran > 0 {
			spans = append(spans, pipeline.Span{Phase: pipeline.PhaseTool, For: ran})
		}
		last = at
	}
	return spans
}

// phases returns the phases of the first fragment of the turn up to its commit, and then the phases of the answer
// that was played. own are the phases of the last fragment.
func (a *account) phases(own []pipeline.Span) []pipeline.Span {
	answering := []pipeline.Phase{pipeline.PhaseLLM, pipeline.PhaseTool, pipeline.PhaseTTS, pipeline.PhaseOut}
	if a.First == nil {
		return own
	}
	var spans []pipeline.Span
	for _, s := range own {
		at := slices.IndexFunc(a.First, func(f pipeline.Span) bool { return f.Phase == s.Phase })
		if at >= 0 && !slices.Contains(answering, s.Phase) {
			s = a.First[at]
		}
		spans = append(spans, s)
	}
	return spans
}

// Turn returns the finished turn.
func (a *account) Turn(ending pipeline.Ending) pipeline.Turn {
	own := a.Spans()
	t := pipeline.Turn{
		Number: a.Number, Spans: a.phases(own), Ending: ending, Reason: a.Reason,
		Interrupted: ending == pipeline.Interrupted, Estimated: a.Estimated,
		Raw: map[string]time.Duration{},
	}
	if !a.T0.IsZero() {
		t.EndedAt = a.T0.Add(pipeline.Turn{Spans: own}.Total())
	}
	t.Speculations, t.Saved = a.Specs, a.saved()
	if a.Fragments > 1 {
		t.MergedFrom = a.Fragments
		for _, s := range own {
			t.Raw["last_fragment_"+string(s.Phase)] = s.For
		}
	}
	if a.Disclosed > 0 {
		t.Raw["disclosure_ms"] = a.Disclosed
	}
	if a.Of != nil {
		_, _, chars, usage := a.Of.Timing()
		t.Chars, t.TokensIn, t.TokensOut = chars, usage.PromptTokens, usage.CompletionTokens
		t.Raw["answer_played_ms"] = playout.SamplesDuration(a.Of.Rate, a.Of.Played())
		if dry := a.Of.Underrun(); dry > 0 {
			t.Raw["underrun_ms"] = dry
		}
	}
	return t
}

// saved returns how much less the caller waited because the answer was requested before the commit.
func (a *account) saved() time.Duration {
	if a.Of == nil || a.Commit.IsZero() || !a.Began.Before(a.Commit) {
		return 0
	}
	_, ready, _, _ := a.Of.Timing()
	if ready.IsZero() {
		return 0
	}
	last := a.Commit
	if ready.After(last) {
		last = ready
	}
	return a.Commit.Add(ready.Sub(a.Began)).Sub(last)
}
