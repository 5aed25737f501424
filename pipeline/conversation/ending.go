package conversation

import (
	"context"
	"errors"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/bridge"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/optout"
	"github.com/parley-voice/parley/pipeline/turn"
)

const (
	// hangupDelay is the time from the agent's last word to the hangup. The callee must still hear the end of the
	// word.
	hangupDelay = 300 * time.Millisecond
	// goodbyeTime bounds the time from the decision to leave until the hangup.
	goodbyeTime = 12 * time.Second
)

// ending ends the session, by hangup, transfer or opt-out. Only the session loop uses it.
type ending struct {
	s      *session
	reason pipeline.Reason // why the session ended; empty while it runs
	err    error           // latest failure

	leaving      bool             // the agent is saying goodbye and takes no more turns
	hangup       <-chan time.Time // nil unless the agent is about to hang up
	hangupReason pipeline.Reason

	transfer     *pipeline.TransferResult // latest transfer; nil for none
	transferring <-chan transferAttempt
	second       media.Leg // second leg of a completed transfer; nil for none

	optOut *optout.Detector // nil if opt-outs are not stored
}

// A transferAttempt is the result of one attempt to transfer the call.
type transferAttempt struct {
	second media.Leg // the leg to join; nil if the callee's side transferred the call itself
	err    error
}

// fail ends the session with an error.
func (e *ending) fail(err error) { e.reason, e.err = pipeline.AgentError, err }

// isUnderway reports whether the agent is leaving or transferring the call. The turn machine
// then gets no more events.
func (e *ending) isUnderway() bool { return e.transferring != nil || e.hangup != nil || e.leaving }

// stop ends the session because the service stops. The agent says goodbye, except during the disclosure or a
// transfer.
func (e *ending) stop(ctx context.Context) {
	e.s.config.Drain = nil
	switch {
	case e.leaving || e.hangup != nil:
	case e.s.greeter.disclosure != nil || e.transferring != nil:
		e.reason = pipeline.Stopped
	default:
		e.s.replies.drop(pipeline.Interrupted)
		e.leave(ctx, phraseGoodbye, pipeline.Stopped)
	}
}

// leave says goodbye, takes no more turns and hangs up. If a reply is being prepared or played, it is played to its
// end instead of the goodbye.
func (e *ending) leave(ctx context.Context, what phrase, why pipeline.Reason) {
	if e.leaving {
		return
	}
	e.leaving = true
	s := e.s
	s.later(ctx, goodbyeTime, func(context.Context) { e.reason = why })
	s.player.Resume(-1)
	if s.replies.current == nil {
		s.replies.current = s.speaker.sayGoodbye(ctx, what, why)
	}
	s.replies.current.release()
}

// onReplyEnd carries out the follow-ups of a reply's tools. It reports whether the agent hangs up or transfers the
// call.
func (e *ending) onReplyEnd(ctx context.Context, then []pipeline.FollowUp) (leaves bool) {
	for _, t := range then {
		switch t.Step {
		case pipeline.Press:
			e.press(t.Keys)
		case pipeline.Hangup:
			e.hangupReason, e.hangup = t.Reason, time.After(hangupDelay)
			return true
		case pipeline.Transfer:
			e.startTransfer(ctx, t.Number)
			return true
		}
	}
	return false
}

func (e *ending) press(keys string) {
	err := errors.New("the leg cannot send keys")
	if pad, ok := e.s.leg.(media.Keypad); ok {
		err = pad.Press(keys)
	}
	if err != nil {
		e.s.log.Warn("failed to press keys", "err", err)
		e.s.record.addNote("the keys were not pressed: " + pipeline.Clean(err.Error()))
	}
}

// startTransfer transfers the call to number and plays a ringback tone. Until the result
// is known, the turn machine gets no events.
func (e *ending) startTransfer(ctx context.Context, number string) {
	s := e.s
	e.transfer = &pipeline.TransferResult{To: number}
	done := make(chan transferAttempt, 1)
	e.transferring = done
	ringing, quiet := context.WithCancel(ctx)
	ring := s.speaker.utterance(turn.Notice)
	s.wg.Go(func() { playRingback(ringing, s.player, ring) })
	s.wg.Go(func() {
		defer quiet()
		second, err := referCall(ctx, s.leg, s.config.Bridge, number)
		done <- transferAttempt{second, err}
	})
}

// onTransfer takes the result of a transfer. After a failure the conversation continues.
func (e *ending) onTransfer(ctx context.Context, t transferAttempt) {
	e.transferring = nil
	if t.err == nil {
		e.second, e.reason = t.second, pipeline.Transferred
		return
	}
	s := e.s
	e.transfer.At = time.Now()
	s.log.Warn("failed to transfer the call", "err", t.err)
	s.record.addNote("the transfer was not answered; the caller hears this")
	s.speaker.stop() // ends the ringback tone
	s.step(ctx, turn.Event{Kind: turn.OwnSpeech})
	s.replies.current = s.speaker.sayText(ctx, s.phraseText(phraseUnreached))
	s.replies.current.release()
}

// closeTransfer waits for a transfer that was open at the end of the call, hangs up its second leg, and completes
// e.transfer.
func (e *ending) closeTransfer() {
	if e.transferring != nil {
		if t := <-e.transferring; t.second != nil {
			_ = t.second.Hangup(media.LocalHangup) // the call has ended
		}
	}
	if t := e.transfer; t != nil && t.At.IsZero() {
		t.At, t.Answered, t.Bridged = time.Now(), e.reason == pipeline.Transferred, e.second != nil
	}
}

// join connects both legs until one of them hangs up, ctx ends or the call reaches its
// maximum duration.
func (e *ending) join(ctx context.Context) {
	c := &e.s.config
	if c.MaxDuration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.AnsweredAt.Add(c.MaxDuration))
		defer cancel()
	}
	if _, err := bridge.Join(ctx, e.s.leg, e.second, nil); err != nil {
		e.s.log.Warn("failed to join the legs", "err", err)
	}
}
