package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/parley-voice/parley/control/quality"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// A Runner takes calls from their claim to their end.
type Runner struct {
	Ledger Ledger
	Dialer Dialer
	Talker Talker
	// Taper records calls; without one nothing is recorded.
	Taper Taper
	Live  *Live
	// Check, where set, says what is wrong with a brief. A call with a brief
	// that cannot be talked by is not dialled: nobody shall pick up to silence.
	Check func(pipeline.Brief) error
	// Margin is how much of the lease must be left when the request leaves;
	// 0 means 5 s.
	Margin time.Duration
	// FinishFor bounds how long a call's end is tried to be written while the
	// database is away; 0 means 10 min.
	FinishFor time.Duration
	// Legs, where set, keeps second legs, to which parties are handed over.
	Legs Legs
	// OptOuts, where set, keeps who asks not to be called again.
	OptOuts OptOuts
	// Tracer, where set, keeps the signalling of calls.
	Tracer Tracer
	Log    *slog.Logger

	tracing sync.WaitGroup
}

// Run makes one attempt: intent, dial, talk, end, in a straight line. It
// returns when the end is written, or nothing more is to be written. The end
// of ctx ends the call.
func (r *Runner) Run(ctx context.Context, c *Claim) error {
	var f Final
	err := r.run(ctx, c, &f)
	if c.Over != nil {
		c.Over(f)
	}
	return err
}

// run fills in f how the call ended.
func (r *Runner) run(ctx context.Context, c *Claim, f *Final) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	live := r.Live.enter(c.Lease, end)
	c.Brief.Leave = live.leave
	defer r.Live.leave(live)
	log := r.log().With("call", c.Call.ID, "attempt", c.Lease.AttemptID)

	if r.Check != nil {
		if err := r.Check(c.Brief); err != nil {
			log.ErrorContext(ctx, "the call is not dialled: its agent cannot talk", "err", err)
			*f = halted(ReasonInternalError)
			return r.finish(ctx, log, c, f)
		}
	}
	var halt *HaltError
	switch err := r.Ledger.Intent(ctx, c.Lease); {
	case errors.As(err, &halt):
		*f = halted(halt.Reason)
		return r.finish(ctx, log, c, f)
	case errors.Is(err, ErrFenced):
		return nil // it was cancelled, or settled by another node
	case errors.Is(err, ErrStopped):
		return r.release(ctx, c, f)
	case err != nil:
		// Whether the intent is committed is not known, but no packet left.
		return errors.Join(fmt.Errorf("intent: %w", err), r.release(ctx, c, f))
	}
	// A process that was stopped between its claim and here must not dial. The
	// dialer looks again when the request leaves.
	c.Target.NotAfter = c.Until.Add(-r.margin())
	if end := c.NotAfter; !end.IsZero() && end.Before(c.Target.NotAfter) {
		c.Target.NotAfter = end
	}
	if !time.Now().Before(c.Target.NotAfter) {
		log.WarnContext(ctx, "too little time is left to dial")
		return r.release(ctx, c, f)
	}

	j := openJournal(ctx, r.Ledger, c.Lease, log)
	j.web = c.Call.Type == Web
	leg, err := r.dial(ctx, c, j, f)
	if errors.Is(err, media.ErrTooLate) && f.DialedAt.IsZero() { // nothing has left
		j.close()
		log.WarnContext(ctx, "too little time was left when the request was to leave")
		return r.release(ctx, c, f)
	}
	if err == nil {
		r.converse(ctx, log, c, leg, j, f)
	}
	j.close()
	defer r.trace(ctx, log, c.Lease, leg, err)
	if errors.Is(context.Cause(ctx), errLeaseLost) && f.AnsweredAt.IsZero() { // a conversation is told of all the same
		return ErrFenced
	}
	return r.finish(ctx, log, c, f)
}

// dial fills in f what is known of the attempt, all of it if nobody answered.
func (r *Runner) dial(ctx context.Context, c *Claim, j *journal, f *Final) (media.Leg, error) {
	var mu sync.Mutex // progress comes from the dialer's goroutines
	progress := func(p media.Progress) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		switch {
		case p == media.Sent && f.DialedAt.IsZero():
			f.DialedAt = now
			j.mark(Sent, now)
		case p == media.Ringing && f.RingingAt.IsZero():
			f.RingingAt = now
			j.mark(Rang, now)
		}
	}
	dialer := r.Dialer
	if c.Dialer != nil {
		dialer = c.Dialer
	}
	leg, err := dialer.Dial(ctx, c.Target, progress)
	mu.Lock()
	defer mu.Unlock()
	now := time.Now()
	if err != nil {
		unanswered(err, context.Cause(ctx), f)
		f.EndedAt = now
		f.Recording = RecordingNone
		if !c.Record || r.Taper == nil {
			f.Recording = RecordingDisabled
		}
		return nil, err
	}
	f.AnsweredAt = now
	if f.DialedAt.IsZero() && c.Call.Type != Web { // a browser comes by itself
		f.DialedAt = now
	}
	j.mark(Answered, now)
	return leg, nil
}

// converse talks, records, and fills in how it went.
func (r *Runner) converse(ctx context.Context, log *slog.Logger, c *Claim, leg media.Leg, j *journal, f *Final) {
	f.Recording = RecordingDisabled
	wire := leg // a tape may not tell what the leg does
	var tape Tape
	if c.Record && r.Taper != nil {
		taped, t, err := r.Taper.Tape(c.Call.ID, leg)
		if err != nil {
			// A full disk must not cost the call.
			log.ErrorContext(ctx, "the call cannot be recorded", "err", err)
			f.Recording = RecordingFailed
		} else {
			leg, tape = taped, t
		}
	}
	b := c.Brief
	var others seconds
	defer r.traceSeconds(ctx, log, &others)
	b.CallID, b.AnsweredAt, b.Watch, b.Bridge = c.Call.ID, f.AnsweredAt, pipeline.Both(j, c.Watch), r.bridge(log, c, &others)
	b.OptOuts = r.optOuts(log, c)
	out, err := r.talk(ctx, leg, b)
	_ = leg.Hangup(media.LocalHangup) // harmless where it ended already
	f.EndedAt = time.Now()
	f.Quality = quality.Of(wire)
	if err == nil {
		err = out.Err
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "the conversation broke", "err", err)
	}
	f.Status, f.Lines, f.Turns = Ended, out.Lines, out.Turns
	f.Reason, f.HangupBy = conversed(out.Reason, context.Cause(ctx))
	f.Transfer = handedOver(out.Transfer)
	f.AnsweredBy, f.AMD = answeredBy(out.AnsweredBy)
	if tape == nil {
		return
	}
	f.Recording = RecordingFinalizing
	if path, err := tape.Close(); err != nil || path == "" {
		log.ErrorContext(ctx, "the recording is lost", "err", err)
		f.Recording = RecordingFailed
	}
}

// talk keeps a panic of the conversation inside its call.
func (r *Runner) talk(ctx context.Context, leg media.Leg, b pipeline.Brief) (out pipeline.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			out = pipeline.Outcome{Reason: pipeline.AgentError}
			err = fmt.Errorf("the conversation panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return r.Talker.Talk(ctx, leg, b)
}

// finish writes the end down, and tries for long: the call took place.
func (r *Runner) finish(ctx context.Context, log *slog.Logger, c *Claim, f *Final) error {
	l := c.Lease
	if c.Drop != nil {
		c.Drop()
	}
	if c.Call.Type == Web {
		neverFails(f)
	}
	var fenced error
	err := r.persist(ctx, func(ctx context.Context) error {
		err := r.Ledger.Finish(ctx, l, *f)
		if errors.Is(err, ErrFenced) {
			fenced = err
			return nil
		}
		if err != nil {
			log.WarnContext(ctx, "the end of the call is not written yet", "err", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the end of call %s is lost: %w", l.CallID, err)
	}
	return fenced
}

// release gives a call back of which nothing has left. A browser waits for
// nobody: its call is over.
func (r *Runner) release(ctx context.Context, c *Claim, f *Final) error {
	if c.Call.Type == Web {
		*f = halted(ReasonInternalError)
		return r.finish(ctx, r.log(), c, f)
	}
	return r.giveBack(ctx, c.Lease)
}

func (r *Runner) giveBack(ctx context.Context, l Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := r.Ledger.Release(ctx, l); err != nil && !errors.Is(err, ErrFenced) {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

func (r *Runner) margin() time.Duration {
	if r.Margin == 0 {
		return 5 * time.Second
	}
	return r.Margin
}

func (r *Runner) finishFor() time.Duration {
	if r.FinishFor == 0 {
		return 10 * time.Minute
	}
	return r.FinishFor
}

func (r *Runner) log() *slog.Logger {
	if r.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Log
}
