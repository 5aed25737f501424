package conversation

import (
	"context"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/amd"
	"github.com/parley-voice/parley/pipeline/answering"
	"github.com/parley-voice/parley/pipeline/turn"
)

// greeter decides when the agent may first speak. It detects who answered, plays the disclosure, and lets the agent
// greet, answer or leave a voicemail message. Only the session loop uses it, except onFrame.
type greeter struct {
	s          *session
	detector   *detector // nil if answering machine detection is off
	message    message
	disclosure *reply              // disclosure that is being played; nil for none
	disclosed  bool                // the disclosure was played to the end
	next       func()              // what to do after the disclosure
	aside      answering.HeldInput // what the callee said during the disclosure; used without a detector
}

// A detector detects who answered.
type detector struct {
	*answering.Monitor
	bank  amd.Bank         // tone detectors; belongs to the goroutine that reads the leg
	alarm <-chan time.Time // fires when the detector needs a Timer event
}

// A message is the voicemail message.
type message struct {
	due   bool // the beep came before the message was ready
	ready bool // the message was synthesized, or cannot be
	text  string
	pcm   []int16 // nil if the message cannot be spoken
}

// onFrame takes every frame of the leg, on the goroutine that reads it.
func (g *greeter) onFrame(f media.Frame) {
	if g.detector == nil {
		return
	}
	signal, back := g.detector.bank.Frame(f)
	if signal == amd.NoSignal {
		return
	}
	e := amd.Event{Kind: amd.Tone, Signal: signal, From: g.s.since(time.Now().Add(-back))}
	select {
	case g.s.updates <- update{do: func(ctx context.Context) { g.detect(ctx, e) }}:
	default: // the session loop is far behind; do not make the leg wait for it
	}
}

func (g *greeter) start(ctx context.Context) {
	if text := g.s.config.Disclosure; text != "" {
		g.disclosure = g.sayFirst(ctx, text)
	} else if text := g.s.config.Greeting; text != "" {
		g.s.replies.current = g.sayFirst(ctx, text)
	}
}

// decide starts the detection. Without a detector, the disclosure starts at once.
func (g *greeter) decide(ctx context.Context) {
	g.detect(ctx, amd.Event{Kind: amd.Timer})
	if g.detector == nil && g.s.config.Disclosure != "" {
		g.disclose(ctx, func() { g.greet(ctx) })
	}
}

func (g *greeter) sayFirst(ctx context.Context, text string) *reply {
	r := g.s.speaker.sayText(ctx, text)
	g.s.record.openGreeting(r)
	return r
}

func (g *greeter) alarm() <-chan time.Time {
	if g.detector == nil {
		return nil
	}
	return g.detector.alarm
}

// onTurnEvent handles an event that the turn machine has already handled.
func (g *greeter) onTurnEvent(ctx context.Context, e turn.Event) {
	if g.detector == nil {
		g.aside.OnEvent(e, g.s.machine.State())
		return
	}
	switch e.Kind {
	case turn.Voice:
		g.detect(ctx, amd.Event{Kind: amd.Voice, From: e.From})
	case turn.Silence:
		g.detect(ctx, amd.Event{Kind: amd.Silence, From: e.From})
	case turn.Transcript:
		g.obey(ctx, g.detector.OnTranscript(e.At, e.Text, e.Final))
	case turn.SpeechStart:
		g.detector.OnAgentStart(e.At)
	case turn.SpeechEnd:
		g.detector.OnAgentEnd(e.At)
	default:
	}
}

func (g *greeter) detect(ctx context.Context, e amd.Event) {
	if g.detector == nil {
		return
	}
	e.At = g.s.since(time.Now())
	g.obey(ctx, g.detector.Step(e))
	g.detector.alarm = nil
	if due := g.detector.Due(); due > 0 {
		g.detector.alarm = time.After(time.Until(g.s.config.AnsweredAt.Add(due)))
	}
}

func (g *greeter) obey(ctx context.Context, orders []answering.Command) {
	for _, o := range orders {
		if g.s.ending.leaving {
			return
		}
		switch o.Do {
		case answering.Greet:
			g.disclose(ctx, func() { g.greet(ctx) })
		case answering.Answer:
			g.disclose(ctx, func() { g.answer(ctx) })
		case answering.Hold:
			g.cancelDisclosure()
			g.s.step(ctx, turn.Event{Kind: turn.Hold})
		case answering.Prepare:
			g.prepareMessage(ctx)
		case answering.Message:
			g.leaveMessage(ctx)
		case answering.Ask:
			g.s.wg.Go(func() {
				e := answering.Opinion(ctx, g.s.model, g.s.config.Engines.LLM.Model, o.Text)
				g.s.report(ctx, update{do: func(ctx context.Context) { g.detect(ctx, e) }})
			})
		case answering.Leave:
			g.cancelDisclosure()
			g.cancelGreeting()
			g.s.record.addUnanswered(g.detector.Take())
			g.s.ending.reason = o.Reason
		}
	}
}

// greet plays the greeting. If the callee pressed keys during the disclosure, the agent answers them instead.
func (g *greeter) greet(ctx context.Context) {
	if g.aside.HasKeys() {
		g.answer(ctx)
		return
	}
	if g.awaitsVerdict() {
		if !g.disclosed {
			g.onVerdict()
		}
		g.s.record.addUnanswered(g.detector.Take())
	}
	g.s.record.addUnanswered(g.aside.Take())
	g.s.step(ctx, turn.Event{Kind: turn.Floor, Text: turn.Greet})
}

// awaitsVerdict reports whether the greeting's turn waits for the detector to decide who answered.
func (g *greeter) awaitsVerdict() bool {
	return g.s.record.current != nil && g.s.machine.State() == turn.Held && g.detector != nil
}

// onVerdict completes the greeting's turn after the detector's decision. If the callee spoke, the turn starts at the
// end of the callee's words.
func (g *greeter) onVerdict() {
	if !g.awaitsVerdict() {
		return
	}
	r := g.s.record
	r.current.Commit, r.current.Reason = time.Now(), g.detector.Verdict().Evidence
	if !r.silence.From.IsZero() {
		r.current.T0, r.current.Estimated = r.silence.Voiced, r.silence.Estimated
	}
}

func (g *greeter) answer(ctx context.Context) {
	g.cancelGreeting()
	g.s.step(ctx, turn.Event{Kind: turn.Floor})
}

// cancelGreeting drops the greeting if the callee has heard nothing of it.
func (g *greeter) cancelGreeting() {
	if g.s.machine.State() != turn.Held || !g.s.replies.discard() {
		return
	}
	if g.disclosed {
		g.s.replies.end(pipeline.Answered, true)
	}
	g.s.record.current = nil
}

// prepareMessage synthesizes the voicemail message in advance, so that it can begin right after the beep.
func (g *greeter) prepareMessage(ctx context.Context) {
	s := g.s
	s.wg.Go(func() {
		text, pcm := s.config.VoicemailMessage, []int16(nil)
		if text == "" {
			var err error
			if text, err = answering.Compose(ctx, s.model, s.config.Engines.LLM.Model, s.config.Prompt); err != nil {
				s.log.Warn("failed to compose the voicemail message", "err", err)
			}
		}
		if text != "" {
			text = strings.TrimSpace(s.config.Disclosure + " " + text)
			pcm = speakMessage(ctx, s.voice, s.style(), text, s.config.Pronunciation)
		}
		s.report(ctx, update{do: func(ctx context.Context) {
			due := g.message.due
			g.message = message{due: due, ready: true, text: text, pcm: pcm}
			if due {
				g.leaveMessage(ctx)
			}
		}})
	})
}

// leaveMessage plays the message from its beginning and then hangs up.
func (g *greeter) leaveMessage(ctx context.Context) {
	s := g.s
	if s.ending.leaving {
		return
	}
	g.cancelDisclosure()
	s.step(ctx, turn.Event{Kind: turn.Hold})
	g.cancelGreeting()
	s.record.addUnanswered(g.detector.Take())
	switch {
	case !g.message.ready:
		g.message.due = true
	case g.message.pcm == nil:
		s.ending.reason = pipeline.VoicemailReached
	default:
		pcm := g.message.pcm
		if s.replies.current != nil {
			s.replies.drop(pipeline.Interrupted)
			pcm = append(make([]int16, media.FrameLen(s.leg.Rate())*2), pcm...) // separates the message from the dropped reply
		}
		s.replies.current = s.speaker.play(ctx, turn.Reply, g.message.text, pcm)
		s.replies.current.book.AddFollowUp(pipeline.FollowUp{Step: pipeline.Hangup, Reason: pipeline.VoicemailLeft})
	}
}
