// Package converse holds the conversation of a call: it hears the leg through a
// recognizer, asks a model what to say and says it with a voice, turn by turn.
package converse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/book"
	"github.com/parley-voice/parley/pipeline/canned"
	"github.com/parley-voice/parley/pipeline/ear"
	"github.com/parley-voice/parley/pipeline/eot/classify"
	"github.com/parley-voice/parley/pipeline/history"
	"github.com/parley-voice/parley/pipeline/keypad"
	"github.com/parley-voice/parley/pipeline/listener"
	"github.com/parley-voice/parley/pipeline/mouth"
	"github.com/parley-voice/parley/pipeline/optout"
	"github.com/parley-voice/parley/pipeline/party"
	"github.com/parley-voice/parley/pipeline/provider"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/turnlog"
)

// An Agent talks. Its fields are set once; one Agent serves all calls.
type Agent struct {
	// The providers, by the name that a brief's engines ask for.
	Recognizers map[string]pipeline.Recognizer
	Models      map[string]pipeline.Model
	Voices      map[string]pipeline.Voice
	Policy      turn.Policy // zero: turn.DefaultPolicy
	// Guards bound what the providers are asked, and ask others where they fail.
	Guards provider.Guards
	// Journal, where set, opens the turn log of a call. It is closed when the
	// conversation is over.
	Journal func(callID string) (io.WriteCloser, error)
	// Classifier, where set, is asked whether a caller has finished.
	Classifier Classifier
	// Opinions has the model asked who answered, where that is in doubt.
	Opinions bool
	Log      *slog.Logger

	notices canned.Shelf
	english optout.English
}

// Check says what is wrong with engines, if anything: what they name must be
// a provider of this agent.
func (a *Agent) Check(e pipeline.Engines) error {
	return errors.Join(
		provider.Check("speech.asr", e.ASR, a.Recognizers),
		provider.Check("speech.llm", e.LLM, a.Models),
		provider.Check("speech.tts", e.TTS, a.Voices),
	)
}

// Model returns what thinks for an engine, beside the calls.
func (a *Agent) Model(e pipeline.Engine) (pipeline.Model, error) {
	if err := provider.Check("speech.llm", e, a.Models); err != nil {
		return nil, err
	}
	return a.Guards.Aside(a.Models, e), nil
}

// Talk holds the conversation on leg until the leg ends, ctx is done or the
// agent leaves; it then hangs up. When it returns, every goroutine it started
// has ended. The error is of the brief; what happened on the line is in the
// Outcome.
func (a *Agent) Talk(ctx context.Context, leg media.Leg, brief pipeline.Brief) (pipeline.Outcome, error) {
	if err := a.Check(brief.Engines); err != nil {
		return pipeline.Outcome{Reason: pipeline.AgentError, Err: err}, errors.Join(err, leg.Hangup(media.Failure))
	}
	if brief.AnsweredAt.IsZero() {
		brief.AnsweredAt = time.Now()
	}
	policy := a.Policy
	if policy == (turn.Policy{}) {
		policy = turn.DefaultPolicy()
	}
	policy.Language, policy.Held = brief.Language, brief.Voicemail != "" || brief.Disclosure != ""
	if a.Classifier != nil {
		policy.Classifier = cmp.Or(policy.Classifier, classify.Timeout)
	}
	log := cmp.Or(a.Log, slog.New(slog.DiscardHandler)).With("call", brief.CallID)
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	meter := &book.Meter{Model: a.Guards.Model(a.Models, brief.Engines.LLM)}
	s := &talk{
		agent: a, leg: leg, brief: brief, log: log,
		model: meter, voice: a.Guards.Voice(a.Voices, brief.Engines.TTS),
		mouth: mouth.New(), news: make(chan news, 16), limits: book.NewLimits(brief.Limits, meter),
		listener: listener.New(
			a.Guards.Recognizer(a.Recognizers, brief.Engines.ASR),
			pipeline.Stream{Rate: leg.Rate(), Model: brief.Engines.ASR.Model, Language: brief.Language}, log,
		),
		machine: turn.New(policy, brief.Greeting != ""),
	}
	s.optsOut()
	var err error
	if s.tools, err = tools.NewSet(s.brief.Tools); err != nil {
		return pipeline.Outcome{Reason: pipeline.AgentError, Err: err}, errors.Join(err, leg.Hangup(media.Failure))
	}
	if brief.Voicemail != "" {
		s.watch = &watch{Watch: party.New(brief.Voicemail, a.Opinions)}
	}
	if a.Journal != nil {
		to, err := a.Journal(brief.CallID)
		if err != nil {
			log.Warn("turn log", "err", err) // a call is worth more than its log
		} else {
			s.journal = turnlog.New(to, log, policy, brief.Greeting != "")
			defer s.journal.Close()
		}
	}
	s.run(ctx, cancel)
	if s.second != nil {
		s.join(outer)
	}
	return s.outcome, nil
}

// talk is one conversation. The ear owns the leg's reading side, the playout
// its writing side, and the mind everything else.
type talk struct {
	agent    *Agent
	leg      media.Leg
	brief    pipeline.Brief
	log      *slog.Logger
	model    pipeline.Model
	voice    pipeline.Voice
	mouth    *mouth.Mouth
	listener *listener.Listener
	watch    *watch // nil where nobody looks who answered
	tools    *tools.Set
	limits   *book.Limits
	news     chan news
	wg       sync.WaitGroup

	// The mind's own.
	machine *turn.Machine
	history history.History
	timer   *time.Timer
	keys    <-chan rune      // that the caller presses; nil once the leg ends
	reply   *reply           // being made or said; nil where there is none
	opening *reply           // the disclosure that is being said; nil where none is
	opened  bool             // it was said to its end
	owed    func()           // what comes after it
	aside   party.Aside      // what the caller said to it, where nobody looks who answered
	spec    *reply           // to what the caller may be about to have said; nil where there is none
	filler  *mouth.Utterance // being said while the reply is made
	journal turnlog.Log
	pressed keypad.Pressed
	optout  *optout.Watch // nil where nobody keeps it
	out     bool          // the party asked not to be called again: the agent leaves
	specs   int           // answers begun for this turn before its commit
	current *book.Account // of the turn that reply answers
	next    int64         // number of the next utterance
	number  int           // of the next turn
	last    ear.Edge      // where the caller last fell silent
	began   ear.Edge      // where the caller last began to speak
	returns bool          // the line returns what the agent says
	outcome pipeline.Outcome
	leaving pipeline.Reason    // once parting is due
	parting <-chan time.Time   // nil where the agent stays
	judging context.CancelFunc // of what the classifier is asked; nil where it never was
	handed  <-chan handed      // tells what became of a handing over; nil where none is tried
	second  media.Leg          // that took the call over; nil where none did
}

// news is that the first sound of an answer is made, or that it broke; or
// something else that the mind is to do.
type news struct {
	of  *mouth.Utterance
	err error // nil: it is made
	do  func(context.Context)
}

// run holds the conversation. The leg is hung up after it, unless another is to
// be joined to it.
func (s *talk) run(ctx context.Context, cancel context.CancelFunc) {
	edges := make(chan ear.Edge, 16)
	e := &ear.Ear{Leg: s.leg, Sound: s.frame, Edges: edges, Sent: s.mouth.Level}
	s.leg.Play(s.mouth)
	var deaf error
	s.wg.Go(func() { defer cancel(); deaf = e.Hear(ctx) })
	s.wg.Go(func() { s.listener.Listen(ctx) })
	s.wg.Go(func() { s.agent.notices.Prepare(ctx, s.voice, s.style(), s.brief.Engines.TTS) })
	s.think(ctx, edges)
	s.leftSaying(ctx)
	cancel()
	cause := media.LocalHangup
	if s.outcome.Reason == pipeline.AgentError {
		cause = media.Failure
	}
	if s.second == nil {
		if err := s.leg.Hangup(cause); err != nil {
			s.log.Warn("hang up", "err", err)
		}
	}
	s.wg.Wait()
	if s.watch != nil {
		by := s.watch.Verdict()
		s.outcome.AnsweredBy = &by
	}
	s.settle()
	s.close()
	if deaf != nil {
		s.outcome.Reason, s.outcome.Err = pipeline.AgentError, errors.Join(s.outcome.Err, fmt.Errorf("ear: %w", deaf))
	}
}

func (s *talk) style() pipeline.Style {
	return pipeline.Style{Rate: s.leg.Rate(), Voice: s.brief.Engines.TTS.Voice, Model: s.brief.Engines.TTS.Model, Language: s.brief.Language}
}

// utter numbers a new utterance.
func (s *talk) utter(kind string) *mouth.Utterance {
	s.next++
	return &mouth.Utterance{Number: s.next, Kind: kind, Rate: s.leg.Rate()}
}

// report tells the mind of an answer. The mind always comes back for more, and
// an answer that is cancelled has nothing to tell.
func (s *talk) report(ctx context.Context, n news) {
	select {
	case s.news <- n:
	case <-ctx.Done():
	}
}

// since is a moment on the machine's clock, which counts from the answer.
func (s *talk) since(t time.Time) time.Duration { return t.Sub(s.brief.AnsweredAt) }

// settled is when the caller's words were last answered.
func (s *talk) settled() time.Time { return s.brief.AnsweredAt.Add(s.machine.Settled()) }

// recognise asks the recognizer for what is final, or opens another.
func (s *talk) recognise(do turn.Do) {
	if do == turn.Reopen {
		s.listener.Renew(s.settled())
		return
	}
	s.listener.Finalize()
}
