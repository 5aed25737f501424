package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Runner runs calls from their claim to their end.
type Runner struct {
	Attempts AttemptStore
	Dialer   Dialer
	Talker   Talker
	// Recorder records calls; with nil, calls are not recorded.
	Recorder Recorder
	Live     *Live
	// Check validates the session before dialing, so that no callee hears silence. If it is nil, there is no check.
	Check func(pipeline.SessionConfig) error
	// Margin is the minimum remaining time of the lease when the INVITE leaves; 0 means 5 s.
	Margin time.Duration
	// FinishTimeout is how long writing a result is retried; 0 means 10 min.
	FinishTimeout time.Duration
	// Legs stores transfer legs; nil disables transfers by a second leg.
	Legs LegStore
	// OptOuts stores opt-outs; may be nil.
	OptOuts OptOutStore
	// Tracer stores the signaling of calls; may be nil.
	Tracer Tracer
	// SendLog records outside the database which calls were sent; may be nil.
	SendLog SendLog
	Log     *slog.Logger

	background sync.WaitGroup // work that continues after a call
}

// Run makes one attempt: intent, dialing, conversation, result. It returns after the result was written, or when
// there is nothing to write. Canceling ctx ends the call.
func (r *Runner) Run(ctx context.Context, c *Claim) error {
	var f CallResult
	err := r.run(ctx, c, &f)
	if c.OnEnd != nil {
		c.OnEnd(f)
	}
	return err
}

// run does the work of Run and sets the result in f.
func (r *Runner) run(ctx context.Context, c *Claim, f *CallResult) error {
	if err := r.sendLog().Allow(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("call %s: %w", c.Call.ID, err), r.release(ctx, c, f))
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	live := r.Live.add(c.Lease, end)
	c.Session.Drain = live.goodbye
	defer r.Live.remove(live)
	log := r.log().With("call", c.Call.ID, "attempt", c.Lease.AttemptID)

	if r.Check != nil {
		if err := r.Check(c.Session); err != nil {
			log.ErrorContext(ctx, "call not dialed: this server cannot run the agent", "err", err)
			*f = stoppedResult(ReasonNotConfigured)
			return r.finish(ctx, log, c, f)
		}
	}
	var halt *HaltError
	switch err := r.Attempts.Intent(ctx, c.Lease); {
	case errors.As(err, &halt):
		*f = stoppedResult(halt.Reason)
		return r.finish(ctx, log, c, f)
	case errors.Is(err, ErrFenced):
		return nil // the call was canceled, or another node settled it
	case errors.Is(err, ErrStopped):
		return r.release(ctx, c, f)
	case err != nil:
		// It is unknown whether the intent was committed, but no packet was sent.
		return errors.Join(fmt.Errorf("intent: %w", err), r.release(ctx, c, f))
	}
	// A process that was suspended after its claim must not dial. The dialer checks NotAfter again when the INVITE
	// leaves.
	c.Target.NotAfter = c.Until.Add(-r.margin())
	if end := c.NotAfter; !end.IsZero() && end.Before(c.Target.NotAfter) {
		c.Target.NotAfter = end
	}
	if c.Target.IsLate(time.Now()) {
		log.WarnContext(ctx, "call not dialed: too little of the lease is left")
		return r.release(ctx, c, f)
	}

	return r.attempt(ctx, log, c, f)
}

// attempt dials, holds the conversation and writes the result. The caller has committed the intent to the database.
func (r *Runner) attempt(ctx context.Context, log *slog.Logger, c *Claim, f *CallResult) error {
	if err := r.sendLog().RecordIntent(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("not dialed: %w", err), r.returnUnsent(ctx, c, f))
	}
	defer func() { r.sendLog().RecordState(c.Lease, Closed, f.EndedAt) }()
	j := openCallLog(ctx, r.Attempts, c.Lease, log)
	j.web = c.Call.Type == Web
	j.onMove = func(s AttemptState, at time.Time) { r.sendLog().RecordState(c.Lease, s, at) }
	leg, err := r.dial(ctx, c, j, f)
	if f.DialedAt.IsZero() && mayDialLater(err) {
		j.close()
		log.WarnContext(ctx, "call returned to the dial queue", "err", err)
		return r.returnUnsent(ctx, c, f)
	}
	if err == nil {
		r.runConversation(ctx, log, c, leg, j, f)
	}
	j.close()
	defer r.trace(ctx, log, c.Lease, leg, err)
	if errors.Is(context.Cause(ctx), errLeaseLost) && f.AnsweredAt.IsZero() { // the result of a conversation is written anyway
		return ErrFenced
	}
	return r.finish(ctx, log, c, f)
}

// mayDialLater reports whether a call may return to the queue if its INVITE was not sent.
func mayDialLater(err error) bool {
	return errors.Is(err, media.ErrTooLate) || errors.Is(err, media.ErrPaused)
}

// dial places the call and sets the times of its progress in f. If the call is not answered, it also sets the result.
func (r *Runner) dial(ctx context.Context, c *Claim, j *callLog, f *CallResult) (media.Leg, error) {
	var mu sync.Mutex // other goroutines call progress
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
		setFailure(err, context.Cause(ctx), f)
		f.EndedAt = now
		f.Recording = RecordingNone
		if !c.Record || r.Recorder == nil {
			f.Recording = RecordingDisabled
		}
		return nil, err
	}
	f.AnsweredAt = now
	if f.DialedAt.IsZero() && c.Call.Type != Web { // a browser connects by itself and is not dialed
		f.DialedAt = now
	}
	j.mark(Answered, now)
	return leg, nil
}

// runConversation holds the conversation, records it, and sets the result.
func (r *Runner) runConversation(ctx context.Context, log *slog.Logger, c *Claim, leg media.Leg, j *callLog, f *CallResult) {
	f.Recording = RecordingDisabled
	wire := leg // kept because a recording leg may lack optional interfaces of the original leg
	var rec Recording
	if c.Record && r.Recorder != nil {
		recorded, started, err := r.Recorder.Record(c.Call.ID, leg)
		if err != nil {
			// A full disk must not end the call.
			log.ErrorContext(ctx, "failed to start the recording", "err", err)
			f.Recording = RecordingFailed
		} else {
			leg, rec = recorded, started
		}
	}
	b := c.Session
	var others transferLegs
	defer r.traceTransferLegs(ctx, log, &others)
	b.CallID, b.AnsweredAt = c.Call.ID, f.AnsweredAt
	b.Observer, b.Bridge = pipeline.CombineObservers(j, c.Watcher), r.transferDialer(log, c, &others)
	b.OptOuts = r.optOuts(log, c)
	out, err := r.talk(ctx, leg, b)
	_ = leg.Hangup(media.LocalHangup) // has no effect if the leg has ended
	f.EndedAt = time.Now()
	f.Quality, f.Usage = EncodeQuality(wire), encodeUsage(out.Usage)
	if err == nil {
		err = out.Err
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "conversation failed", "err", err)
	}
	f.Status, f.Lines, f.Turns = Ended, out.Lines, out.Turns
	f.Reason, f.HangupBy = endReason(out.Reason, context.Cause(ctx))
	f.Transfer, f.TransferLegs = transferJSON(out.Transfer), others.answered()
	f.AnsweredBy, f.AMD = amdJSON(out.AnsweredBy)
	if rec != nil {
		r.closeRecording(ctx, log, rec, f)
	}
}

// closeRecording finishes a recording. It sets the status "failed" if that fails within recordingCloseTimeout, and
// "finalizing" otherwise.
func (r *Runner) closeRecording(ctx context.Context, log *slog.Logger, rec Recording, f *CallResult) {
	f.Recording = RecordingFinalizing
	closed := make(chan closedRecording, 1)
	r.background.Go(func() {
		path, err := rec.Close()
		if err != nil || path == "" {
			log.ErrorContext(ctx, "failed to finish the recording", "file", path, "err", err)
		}
		closed <- closedRecording{path, err}
	})
	late := time.NewTimer(recordingCloseTimeout)
	defer late.Stop()
	select {
	case c := <-closed:
		f.Truncated = c.path != "" && errors.Is(c.err, ErrTruncated)
		if !f.Truncated && (c.err != nil || c.path == "") {
			f.Recording = RecordingFailed
		}
	case <-late.C:
		log.WarnContext(ctx, "slow disk: call ended before its recording was stored")
	}
}

// recordingCloseTimeout bounds how long the end of a call waits for the recording. A recording that takes longer is
// stored later.
const recordingCloseTimeout = 2 * time.Second

type closedRecording struct {
	path string
	err  error
}

// talk runs the conversation and converts a panic to an error.
func (r *Runner) talk(ctx context.Context, leg media.Leg, b pipeline.SessionConfig) (out pipeline.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			out = pipeline.Outcome{Reason: pipeline.AgentError}
			err = fmt.Errorf("conversation panicked: %v\n%s", p, debug.Stack())
		}
	}()
	r.Live.talking.Add(1)
	defer r.Live.talking.Add(-1)
	return r.Talker.Talk(ctx, leg, b)
}

// finish writes the result, with retries.
func (r *Runner) finish(ctx context.Context, log *slog.Logger, c *Claim, f *CallResult) error {
	l := c.Lease
	if c.HangUp != nil {
		c.HangUp()
	}
	if c.Call.Type == Web {
		convertToWebResult(f)
	}
	if err := r.sendLog().RecordEnd(l, f); err != nil {
		log.WarnContext(ctx, "failed to write the result to the journal", "err", err)
	}
	var fenced error
	err := r.writeWithRetry(ctx, func(ctx context.Context) error {
		err := r.Attempts.Finish(ctx, l, *f)
		if errors.Is(err, ErrFenced) {
			again, fault := r.sendLog().IsRestored(ctx, l)
			if fault != nil {
				return fault
			}
			if again {
				err = r.Attempts.Finish(ctx, l, *f)
			}
		}
		if errors.Is(err, ErrFenced) {
			fenced = err
			return nil
		}
		if err != nil {
			log.WarnContext(ctx, "failed to write the result of the call; retrying", "err", err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("failed to write the result of call %s: %w", l.CallID, err)
	}
	return fenced
}

// returnUnsent records that the INVITE of a call did not leave, and returns the call to the queue.
func (r *Runner) returnUnsent(ctx context.Context, c *Claim, f *CallResult) error {
	if err := r.sendLog().RecordEnd(c.Lease, nil); err != nil {
		r.log().WarnContext(ctx, "failed to write to the journal that nothing was sent", "call", c.Call.ID, "err", err)
	}
	return r.release(ctx, c, f)
}

func (r *Runner) sendLog() SendLog {
	if r.SendLog == nil {
		return noSendLog{}
	}
	return r.SendLog
}

// release returns a call to the queue. The INVITE must not have been sent. A web call ends instead, because its
// browser does not wait.
func (r *Runner) release(ctx context.Context, c *Claim, f *CallResult) error {
	if c.Call.Type == Web {
		*f = stoppedResult(ReasonInternalError)
		return r.finish(ctx, r.log(), c, f)
	}
	return r.releaseLease(ctx, c.Lease)
}

func (r *Runner) releaseLease(ctx context.Context, l Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := r.Attempts.Release(ctx, l); err != nil && !errors.Is(err, ErrFenced) {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

func (r *Runner) margin() time.Duration { return cmp.Or(r.Margin, 5*time.Second) }

func (r *Runner) finishTimeout() time.Duration { return cmp.Or(r.FinishTimeout, 10*time.Minute) }

func (r *Runner) log() *slog.Logger { return cmp.Or(r.Log, slog.New(slog.DiscardHandler)) }
