package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
	"github.com/parley-voice/parley/pipeline/eot"
	"github.com/parley-voice/parley/pipeline/input"
	"github.com/parley-voice/parley/pipeline/playout"
	"github.com/parley-voice/parley/pipeline/turn"
	"github.com/parley-voice/parley/pipeline/turn/turnlog"
)

const (
	// recent is how much of the agent's speech the turn machine receives.
	recent = 4 * time.Second
	// all is longer than any speech.
	all = time.Hour
)

// A Classifier estimates whether a caller has finished. The session ignores a guess that comes with an error.
type Classifier interface {
	Guess(ctx context.Context, p eot.Pause) (eot.Guess, error)
}

// session is one conversation. Its loop passes events to the turn machine and carries out the
// machine's actions. Other goroutines read the leg, transcribe and speak.
type session struct {
	*call
	player      *playout.Player
	transcriber *transcriber
	machine     *turn.Machine
	turnLog     turnlog.Log
	classifier  Classifier         // nil without a classifier
	cancelGuess context.CancelFunc // cancels the open question to the classifier; nil if none is open
	timer       *time.Timer
	keys        <-chan rune // keys of the caller; nil once the leg has ended
	hasEcho     bool        // the callee's line echoes the agent's speech

	speaker *speaker
	record  *record
	replies *replies
	greeter greeter
	ending  ending
}

// run holds the conversation. It hangs up at the end unless a second leg took the call over.
func (s *session) run(ctx context.Context, cancel context.CancelFunc) {
	edges := make(chan input.Edge, 16)
	in := &input.Listener{
		Leg: s.leg, Sound: s.onFrame, SetBatch: s.transcriber.SetBatch, Edges: edges, Sent: s.player.Level,
	}
	s.leg.Play(s.player)
	var readErr error
	s.wg.Go(func() { defer cancel(); readErr = in.Run(ctx) })
	s.wg.Go(func() { s.transcriber.Listen(ctx) })
	if s.config.Typed != nil {
		s.wg.Go(func() { s.readTyped(ctx) })
	}
	s.wg.Go(func() { s.speaker.phrases.Prepare(ctx, s.voice, s.style(), s.config.Engines.TTS) })
	s.loop(ctx, edges)
	s.ending.onHangup(ctx)
	cancel()
	cause := media.LocalHangup
	if s.ending.reason == pipeline.AgentError {
		cause = media.Failure
	}
	if s.ending.second == nil {
		if err := s.leg.Hangup(cause); err != nil {
			s.log.Warn("failed to hang up", "err", err)
		}
	}
	s.wg.Wait()
	s.ending.closeTransfer()
	s.close()
	if readErr != nil {
		s.ending.fail(errors.Join(s.ending.err, fmt.Errorf("read the leg: %w", readErr)))
	}
}

func (s *session) outcome() pipeline.Outcome {
	o := pipeline.Outcome{
		Lines: s.record.lines, Turns: s.record.turns,
		Reason: s.ending.reason, Err: s.ending.err, Transfer: s.ending.transfer,
		Usage: s.usage.Total(),
	}
	if s.greeter.detector != nil {
		by := s.greeter.detector.Verdict()
		o.AnsweredBy = &by
	}
	return o
}

// close closes the turn that was open at the end of the call.
func (s *session) close() {
	s.replies.forget()
	s.greeter.cancelDisclosure()
	if s.replies.current != nil || s.record.current != nil || s.replies.filler != nil {
		ending := pipeline.Interrupted
		if s.ending.reason == pipeline.AgentError {
			ending = pipeline.Failed
		}
		s.replies.end(ending, false)
	}
}

// onFrame takes every frame of the leg, on the goroutine that reads it.
func (s *session) onFrame(f media.Frame) {
	s.transcriber.Write(f)
	s.greeter.onFrame(f)
}

func (s *session) start(ctx context.Context) {
	s.greeter.start(ctx)
	if most := s.config.MaxDuration; most > 0 {
		left := time.Until(s.config.AnsweredAt.Add(most))
		s.later(ctx, left, func(context.Context) { s.ending.reason = pipeline.MaxDurationReached })
	}
	s.act(ctx, s.machine.Start())
	s.greeter.decide(ctx)
}

func (s *session) loop(ctx context.Context, edges <-chan input.Edge) {
	s.timer = time.NewTimer(time.Hour)
	defer s.timer.Stop()
	s.timer.Stop()
	s.start(ctx)
	s.keys = s.leg.Digits()
	for s.ending.reason == "" {
		select {
		case <-ctx.Done():
			s.ending.reason = pipeline.ReasonOf(s.leg.Cause())
		case <-s.config.Drain:
			s.ending.stop(ctx)
		case <-s.ending.hangup:
			s.ending.reason = s.ending.hangupReason
		case t := <-s.ending.transferring:
			s.ending.onTransfer(ctx, t)
		case x := <-edges:
			s.onEdge(ctx, x)
		case t := <-s.transcriber.Results():
			s.onTranscript(ctx, t)
		case finalOnly := <-s.transcriber.Opened():
			s.step(ctx, turn.Event{Kind: turn.RecognizerOpen, FinalOnly: finalOnly})
		case err := <-s.transcriber.Failures():
			s.ending.err = err
			s.step(ctx, turn.Event{Kind: turn.RecognizerLost})
		case m := <-s.player.Marks():
			s.onMark(ctx, m)
		case k, ok := <-s.keys:
			s.onKey(ctx, k, ok)
		case u := <-s.updates:
			s.onUpdate(ctx, u)
		case <-s.timer.C:
			s.step(ctx, turn.Event{Kind: turn.Timer})
		case <-s.greeter.alarm():
			s.greeter.detect(ctx, amd.Event{Kind: amd.Timer})
		}
	}
}

func (s *session) onEdge(ctx context.Context, x input.Edge) {
	e := turn.Event{Kind: x.Kind, Length: x.Loud}
	s.hasEcho = x.HasEcho
	if x.Kind == turn.Voice {
		s.record.onset, e.From = x, s.since(x.From)
	}
	if x.Kind == turn.Silence || x.Kind == turn.Lull {
		s.record.silence, e.From = x, s.since(x.From)
		e.Pitch, e.Trail, e.HasProsody = x.Prosody.Fall, x.Prosody.Trail, x.Prosody.Known
	}
	s.step(ctx, e)
}

func (s *session) onTranscript(ctx context.Context, t transcript) {
	e := turn.Event{Kind: turn.Transcript, Text: t.Text, Final: t.Final, Finalized: t.Finalized, Unanswered: t.Unanswered, P: t.EndOfTurn}
	if !t.Zero.IsZero() {
		e.From, e.Until = max(1, s.since(t.Zero.Add(t.Start))), s.since(t.Zero.Add(t.End)) // 0 means that the time is unknown
		if text, begins, ok := t.From(s.settled()); ok {                                   // earlier words were already answered
			e.Text, e.From = text, max(1, s.since(begins))
		}
	}
	s.ending.onWords(ctx, t.Text, t.Final)
	s.step(ctx, e)
}

// onMark handles the start or the end of an utterance. Marks of a dropped reply are ignored.
func (s *session) onMark(ctx context.Context, m playout.Mark) {
	if s.greeter.isDisclosure(m.Of) {
		s.greeter.onMark(ctx, m)
		return
	}
	if s.replies.current == nil || !s.replies.is(m.Of) && m.Of != s.replies.filler {
		return
	}
	e := turn.Event{Kind: turn.SpeechStart, Text: m.Of.Kind}
	if m.Ended {
		e.Kind, e.AgentText = turn.SpeechEnd, m.Of.RecentText(all)
	}
	current := s.record.current
	switch {
	case !m.Ended && current != nil && current.Of == m.Of:
		current.Audible = m.At
	case m.Ended && s.replies.is(m.Of):
		then := s.replies.current.book.FollowUps()
		s.replies.end(pipeline.Answered, true)
		if s.ending.onReplyEnd(ctx, then) {
			return
		}
	case m.Ended:
		s.replies.endFiller(true)
	}
	s.step(ctx, e)
}

func (s *session) onKey(ctx context.Context, k rune, ok bool) {
	if !ok {
		s.keys = nil
		return
	}
	s.record.pressed.Add(string(k))
	s.ending.onKey(ctx, k)
	s.step(ctx, turn.Event{Kind: turn.Key, Text: string(k)})
}

// readTyped passes the words that the caller types to the session's loop until ctx ends.
func (s *session) readTyped(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case text := <-s.config.Typed:
			s.report(ctx, update{do: func(ctx context.Context) {
				s.ending.onWords(ctx, text, true)
				s.step(ctx, turn.Event{Kind: turn.Typed, Text: text})
			}})
		}
	}
}

func (s *session) onUpdate(ctx context.Context, u update) {
	switch {
	case u.do != nil:
		u.do(ctx)
	case errors.Is(u.err, errSilent):
		if s.replies.is(u.of) {
			s.onSilentReply(ctx)
		}
	case u.err != nil:
		s.onReplyFailure(ctx, u)
	case s.replies.is(u.of), s.replies.isSpec(u.of):
		s.step(ctx, turn.Event{Kind: turn.Ready})
	}
}

func (s *session) onSilentReply(ctx context.Context) {
	then := s.replies.current.book.FollowUps()
	s.step(ctx, turn.Event{Kind: turn.SpeechStart, Text: turn.Reply})
	s.replies.end(pipeline.Silent, true)
	if !s.ending.onReplyEnd(ctx, then) {
		s.step(ctx, turn.Event{Kind: turn.SpeechEnd, Text: turn.Reply})
	}
}

func (s *session) onReplyFailure(ctx context.Context, u update) {
	switch {
	case s.greeter.isDisclosure(u.of):
		s.ending.fail(fmt.Errorf("play the disclosure: %w", u.err))
	case s.replies.isSpec(u.of):
		s.log.Info("a reply that was prepared before the end of the turn failed", "err", u.err) // the commit begins the reply again
		s.replies.spec = nil
		s.step(ctx, turn.Event{Kind: turn.ReplyFailed})
	case s.replies.is(u.of):
		s.log.Warn("reply failed", "err", u.err)
		if s.ending.err = u.err; s.ending.leaving {
			s.ending.reason = pipeline.AgentHungUp
		}
		s.step(ctx, turn.Event{Kind: turn.ReplyFailed})
	}
}

// step passes an event to the turn machine, carries out its actions, and passes the event on to
// the greeter.
func (s *session) step(ctx context.Context, e turn.Event) {
	if s.ending.isUnderway() {
		return
	}
	e.At = s.since(time.Now())
	if e.AgentText == "" && e.Kind != turn.Timer {
		e.AgentText, e.Words, e.AllHeard = s.replies.heard()
	}
	e.HasEcho = s.hasEcho
	before, acts := s.machine.State(), s.machine.Step(e)
	shown, did := turnlog.Redact(&s.record.pressed, e, acts)
	s.log.Debug("turn", "event", shown, "from", before, "to", s.machine.State(), "do", did)
	s.turnLog.Write(shown, did)
	turnlog.Notify(s.config.Observer, before, s.machine.State(), shown, s.record.number)
	s.act(ctx, acts)
	s.greeter.onTurnEvent(ctx, e)
}

func (s *session) act(ctx context.Context, acts []turn.Action) {
	for _, a := range acts {
		switch a.Do {
		case turn.Finalize:
			s.transcriber.Finalize()
		case turn.Reopen:
			s.transcriber.Renew(s.settled())
		case turn.SetTimer:
			s.setTimer(a.At)
		case turn.Judge:
			s.judge(ctx, a.Text)
		case turn.Note:
			s.record.addCallerText(a.Text, a.From, a.From)
		case turn.Leave:
			s.ending.reason = pipeline.Reason(a.Reason)
		case turn.Duck, turn.Unduck, turn.Pause, turn.Resume:
			s.adjust(a.Do)
		default:
			s.reply(ctx, a)
		}
	}
}

func (s *session) reply(ctx context.Context, a turn.Action) {
	r := s.replies
	switch a.Do {
	case turn.Speculate:
		r.speculate(ctx, a.Text)
	case turn.Commit:
		r.commit(ctx, a)
	case turn.Release:
		if r.current != nil {
			r.current.release()
		}
	case turn.Retract:
		r.retract()
	case turn.Yield:
		r.drop(pipeline.Interrupted)
	case turn.Drop:
		r.forget()
	case turn.Fill:
		r.filler = s.speaker.playPhrase(ctx, turn.Filler, phraseFiller).Utterance
	case turn.Nudge:
		r.replace(ctx, pipeline.Interrupted, phraseNudge)
	case turn.Apologize:
		if a.Reason == turn.RecognizerSilent {
			s.transcriber.Renew(s.settled())
			s.record.openUnheard()
		}
		r.replace(ctx, pipeline.Failed, phraseApology)
	default:
	}
}

func (s *session) adjust(how turn.Do) {
	switch how {
	case turn.Duck:
		s.player.Duck(true)
	case turn.Pause:
		s.player.Pause(s.replies.audible().PausePoint())
	case turn.Resume:
		s.player.Resume(s.replies.audible().ResumePoint())
	default:
		s.player.Duck(false)
	}
}

func (s *session) setTimer(at time.Duration) {
	s.timer.Stop()
	if at > 0 {
		s.timer.Reset(time.Until(s.config.AnsweredAt.Add(at)))
	}
}

// settled returns the time before which all words of the caller are answered.
func (s *session) settled() time.Time { return s.config.AnsweredAt.Add(s.machine.Settled()) }

// judge asks the classifier about text. It cancels an earlier question.
func (s *session) judge(ctx context.Context, text string) {
	if s.classifier == nil {
		return
	}
	if s.cancelGuess != nil {
		s.cancelGuess()
	}
	asking, cancel := context.WithCancel(ctx)
	s.cancelGuess = cancel
	p := s.machine.Pause(text)
	s.wg.Go(func() {
		defer cancel()
		g, err := s.classifier.Guess(asking, p)
		if err != nil {
			s.log.Debug("classifier failed", "err", err)
			g.P = -1
		}
		s.report(asking, update{do: func(ctx context.Context) {
			s.step(ctx, turn.Event{Kind: turn.Classified, Text: text, P: g.P})
		}})
	})
}
