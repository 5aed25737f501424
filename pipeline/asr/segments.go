package asr

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

const (
	maxInFlight  = 3 // most requests at once
	maxPending   = 8 // most jobs without a delivered result
	requestLimit = 4 * time.Second
)

// A transcribeFunc returns the final text of a segment. After requestLimit, ctx ends with the cause errSilent.
type transcribeFunc func(ctx context.Context, s segment) (pipeline.Result, error)

// segments is a pipeline.Recognition that sends each segment in an HTTP request of its own. One
// goroutine owns the state, and each request runs in another. Close waits for all of them.
type segments struct {
	transcribe transcribeFunc
	rate       int
	queue      chan media.Frame // frames in order; a nil frame stands for Finalize
	free       chan media.Frame // buffers of frames for reuse
	results    chan pipeline.Result
	completed  chan *job
	ctx        context.Context //nolint:containedctx // of the requests, which outlive Recognize
	cancel     context.CancelFunc
	wg         sync.WaitGroup
	err        error // valid once results is closed

	segmenter segmenter
	pending   []*job // jobs without a delivered result, in order
	inFlight  int
}

// A job is a segment whose text is to be delivered.
type job struct {
	segment  segment
	finalize bool          // the result answers a Finalize
	at       time.Duration // audio position of the Finalize
	due      time.Time     // when deliver answers the Finalize without waiting for the text
	answered bool          // deliver has answered the Finalize without the text
	started  bool
	complete bool
	result   pipeline.Result
	err      error
}

func startSegments(ctx context.Context, rate int, transcribe transcribeFunc) *segments {
	s := &segments{
		transcribe: transcribe, rate: rate, segmenter: segmenter{rate: rate},
		queue: make(chan media.Frame, queueFrames+8), free: make(chan media.Frame, spareFrames),
		results: make(chan pipeline.Result, 16), completed: make(chan *job, maxPending),
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(s.run)
	return s
}

// Rate implements media.Sink.
func (s *segments) Rate() int { return s.rate }

// WriteFrame implements media.Sink.
func (s *segments) WriteFrame(f media.Frame) error {
	var b media.Frame
	select {
	case b = <-s.free:
	default:
		b = make(media.Frame, len(f))
	}
	return s.put(append(b[:0], f...))
}

// FinalizeOnly implements pipeline.FinalizeOnly.
func (s *segments) FinalizeOnly() bool { return true }

// Finalize implements pipeline.Recognition.
func (s *segments) Finalize() error { return s.put(nil) }

func (s *segments) put(f media.Frame) error {
	select {
	case s.queue <- f:
		return nil
	default: // the goroutine has ended and no longer reads the queue
		return fmt.Errorf("%s: queue is full", transcriptionsName)
	}
}

const transcriptionsName = "transcriptions"

// Results implements pipeline.Recognition.
func (s *segments) Results() <-chan pipeline.Result { return s.results }

// Close implements pipeline.Recognition.
func (s *segments) Close() error {
	s.cancel()
	s.wg.Wait()
	return s.err
}

// run owns the state until the first error or Close.
func (s *segments) run() {
	defer close(s.results)
	defer s.cancel() // cancels the remaining requests
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for s.err == nil {
		select {
		case f := <-s.queue:
			s.onInput(f)
		case j := <-s.completed:
			j.complete, s.inFlight = true, s.inFlight-1
		case <-due.C:
		case <-s.ctx.Done():
			return
		}
		if s.ctx.Err() != nil { // the results of canceled requests are not needed
			return
		}
		s.startNext()
		s.deliver(time.Now())
		if at, ok := s.nextDue(); ok {
			due.Reset(time.Until(at))
		}
	}
}

func (s *segments) onInput(f media.Frame) {
	if f == nil {
		j := &job{finalize: true, at: s.segmenter.at, due: time.Now().Add(slowTimeout)}
		var spoken bool
		if j.segment, spoken = s.segmenter.take(); !spoken { // the caller said nothing since the last Finalize
			j.started, j.complete, j.result = true, true, pipeline.Result{Final: true, Start: j.at, End: j.at}
		}
		s.add(j)
		return
	}
	if full, ok := s.segmenter.add(f); ok {
		s.add(&job{segment: full})
	}
	select {
	case s.free <- f:
	default: // free is full
	}
}

func (s *segments) add(j *job) {
	if s.pending = append(s.pending, j); len(s.pending) > maxPending {
		s.err = fmt.Errorf("%s: %w", transcriptionsName, errSilent)
	}
}

// startNext starts waiting requests in order, as far as maxInFlight allows.
func (s *segments) startNext() {
	for _, j := range s.pending {
		if s.inFlight >= maxInFlight {
			return
		}
		if j.started {
			continue
		}
		j.started = true
		s.inFlight++
		s.wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(s.ctx, requestLimit, errSilent)
			defer cancel()
			if j.result, j.err = s.transcribe(ctx, j.segment); j.err != nil && ctx.Err() != nil {
				j.err = context.Cause(ctx)
			}
			j.segment.pcm = nil
			s.completed <- j // never blocks: completed has room for maxPending jobs
		})
	}
}

// deliver sends complete results in order. It answers a Finalize without text if the text is late.
func (s *segments) deliver(now time.Time) {
	for len(s.pending) > 0 && s.pending[0].complete {
		j := s.pending[0]
		s.pending = s.pending[1:]
		if j.err != nil {
			s.err = fmt.Errorf("%s: %w", transcriptionsName, j.err)
			return
		}
		r := j.result
		if r.Finalized = j.finalize && !j.answered; j.finalize {
			r.End = max(r.End, j.at)
		}
		if r.Finalized || r.Text != "" {
			s.yield(r)
		}
	}
	for _, j := range s.pending {
		if j.finalize && !j.answered && !now.Before(j.due) {
			j.answered = true
			s.yield(pipeline.Result{Final: true, Finalized: true, Unanswered: true, Start: j.at, End: j.at})
		}
	}
}

// nextDue returns the earliest due time of an unanswered Finalize. It reports false if there is none.
func (s *segments) nextDue() (time.Time, bool) {
	for _, j := range s.pending {
		if j.finalize && !j.answered {
			return j.due, true
		}
	}
	return time.Time{}, false
}

func (s *segments) yield(r pipeline.Result) {
	select {
	case s.results <- r:
	case <-s.ctx.Done():
	}
}
