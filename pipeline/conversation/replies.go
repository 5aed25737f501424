package conversation

import (
	"context"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/playout"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/pipeline/turn"
)

// replies owns the replies that are being prepared or played. It belongs to the session
// loop.
type replies struct {
	*call
	speaker *speaker
	record  *record
	tools   *tools.Set
	limits  *callLimits
	current *reply             // reply that is being prepared or played; nil for none
	spec    *reply             // speculative reply, begun before the commit of its turn; nil for none
	filler  *playout.Utterance // filler that is played while current is prepared; nil for none
}

func (r *replies) is(u *playout.Utterance) bool { return r.current != nil && r.current.Utterance == u }

func (r *replies) isSpec(u *playout.Utterance) bool { return r.spec != nil && r.spec.Utterance == u }

func (r *replies) answer(ctx context.Context, then ...pipeline.Message) *reply {
	re := r.speaker.newReply(turn.Reply)
	loop := tools.Loop{
		Model: r.model, Set: r.tools, Log: &re.book, Committed: re.agreed, UseCall: r.limits.Call,
		Prompt: pipeline.Prompt{
			Model: r.config.Engines.LLM.Model, Instructions: r.config.Prompt,
			Messages: append(r.record.history.Messages(), then...),
		},
		Fillers: fillerPhrases(r.config.Language),
		Quiet:   func() bool { return re.owed.Load() == 0 && re.Buffered() == 0 && r.speaker.isSilent() },
	}
	return r.speaker.speak(ctx, re, loop.Answer)
}

func (r *replies) speculate(ctx context.Context, text string) {
	r.forget()
	if r.limits.Reached(false) {
		return // commit will say goodbye instead
	}
	r.record.specs++
	r.spec = r.answer(ctx, pipeline.Message{Role: pipeline.RoleCaller, Text: text})
}

func (r *replies) forget() {
	if r.spec != nil {
		r.spec.cancel()
		r.spec = nil
	}
}

// commit opens the turn of the Commit action a and starts the reply.
func (r *replies) commit(ctx context.Context, a turn.Action) {
	r.record.openTurn(a)
	said, prepared := callerMessages(a.Text, a.Keys), a.Prepared && r.spec != nil
	switch {
	case r.limits.Reached(prepared):
		r.forget()
		r.current = r.speaker.sayGoodbye(ctx, phraseGoodbye, pipeline.AgentHungUp)
	case prepared:
		r.current, r.spec = r.spec, nil
	default:
		r.forget()
		r.current = r.answer(ctx, said...)
	}
	r.limits.Answers++
	r.current.agree()
	r.record.history.Commit(said...)
	r.record.answerWith(r.current)
}

// retract drops a reply of which the caller heard almost nothing. The words that the caller heard go into the
// transcript, but the model does not see them. The results of tool calls stay in the history, so that the tools do
// not run twice.
func (r *replies) retract() {
	r.speaker.stop()
	r.endFiller(false)
	if r.current != nil {
		r.current.cancel()
		r.record.addAgentLine(r.current.Utterance, false, false)
	}
	r.record.history.Retract()
	if r.current != nil {
		r.record.addTools(r.current)
	}
	r.current = nil
}

// drop stops the agent's speech and closes the turn. The part that the caller heard stays in
// the transcript.
func (r *replies) drop(ending pipeline.Ending) {
	r.speaker.stop()
	r.forget()
	if r.current != nil {
		r.current.cancel()
	}
	r.end(ending, false)
}

// discard drops the current reply if the caller has heard nothing of it. It reports whether it dropped a reply.
func (r *replies) discard() bool {
	if r.current == nil || r.current.Played() > 0 {
		return false
	}
	r.speaker.stop()
	r.current.cancel()
	r.current = nil
	return true
}

// end adds the lines of the turn to the transcript and closes the turn. whole means that the reply was played to its
// end.
func (r *replies) end(ending pipeline.Ending, whole bool) {
	r.record.addCallerLine()
	r.endFiller(false)
	ran := time.Duration(0)
	if r.current != nil {
		r.record.addTools(r.current)
		r.record.addAgentLine(r.current.Utterance, whole, true)
		ran = r.current.book.Duration()
	}
	r.record.closeTurn(ending, ran)
	r.current = nil
}

// endFiller records what the caller heard of the filler. The model does not see it.
func (r *replies) endFiller(whole bool) {
	if r.filler != nil {
		r.record.addAgentLine(r.filler, whole, false)
		r.filler = nil
	}
}

// replace plays a phrase instead of the current reply.
func (r *replies) replace(ctx context.Context, ending pipeline.Ending, what phrase) {
	r.drop(ending)
	r.current = r.speaker.playPhrase(ctx, turn.Notice, what)
}

// heard returns the agent's recent words, the number of words of the utterance that the caller heard, and whether the
// caller heard all of them.
func (r *replies) heard() (text string, words int, whole bool) {
	u := r.audible()
	if u == nil {
		return "", 0, false
	}
	words, whole = u.CountHeard()
	return u.RecentText(recent), words, whole
}

// audible returns the utterance of this turn that the caller hears or heard last; nil for none.
// A filler may never become audible.
func (r *replies) audible() *playout.Utterance {
	switch {
	case r.current != nil && r.current.Played() > 0:
		return r.current.Utterance
	case r.filler != nil && r.filler.Played() > 0:
		return r.filler
	default:
		return nil
	}
}
