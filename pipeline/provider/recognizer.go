package provider

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// maxOpen bounds the opening of a stream if there is a fallback.
const maxOpen = 1500 * time.Millisecond

// Recognizer returns the guarded recognizer of an engine for one call. The fallback is
// used if a stream cannot be opened, and for the stream after one that broke.
func (g *Guards) Recognizer(c *Clients, e pipeline.Engine, meter *pipeline.UsageMeter) pipeline.Recognizer {
	r := &recognizer{meter: meter}
	for _, one := range c.resolveChain("asr", e) {
		r.chain = append(r.chain, guardedRecognizer{g.of("asr", one.EndpointID()), c.of(one.OrgID).Recognizers[one.Provider], one})
	}
	return r
}

type guardedRecognizer struct {
	*guard
	pipeline.Recognizer
	engine pipeline.Engine
}

// recognizer is a chain of recognizers.
type recognizer struct {
	chain []guardedRecognizer
	first atomic.Int64         // index of the recognizer to try first
	meter *pipeline.UsageMeter // nil if usage is not measured
}

// Recognize implements pipeline.Recognizer. Each recognizer but the last must open within maxOpen.
func (r *recognizer) Recognize(ctx context.Context, s pipeline.Stream) (pipeline.Recognition, error) {
	var errs []error
	first := int(r.first.Load())
	for n := range r.chain {
		bounded, cancel := ctx, context.CancelFunc(func() {})
		if n < len(r.chain)-1 {
			bounded, cancel = context.WithTimeout(ctx, maxOpen)
		}
		rec, err := r.open(ctx, bounded, (first+n)%len(r.chain), s)
		cancel()
		if err == nil {
			return rec, nil
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// open opens a stream of the n-th recognizer. asker is the context of the requester; ctx bounds the opening.
func (r *recognizer) open(asker, ctx context.Context, n int, s pipeline.Stream) (pipeline.Recognition, error) {
	e := r.chain[n]
	visit, err := e.begin(asker)
	if err != nil {
		return nil, err
	}
	s.Model, s.Options = e.engine.Model, e.engine.Options
	rec, err := e.Recognize(ctx, s)
	if err != nil {
		visit.finish(err)
		return nil, err
	}
	if _, late := e.Recognizer.(pipeline.Prober); !late {
		visit.note(Responding)
	}
	visit.canceled = func() error { return nil } // ctx bounds only the opening; Close ends the stream
	out := &recognition{Recognition: rec, visit: visit, results: make(chan pipeline.Result), stop: make(chan struct{})}
	out.meter, out.engine, out.onBreak = r.meter, e.engine, func() {
		r.first.Store(int64((n + 1) % len(r.chain))) // the next stream tries the next recognizer first
	}
	out.wg.Go(out.forward)
	return out, nil
}

// A recognition reports the responses and the end of a stream to its guard. Its goroutine
// forwards results; Close waits for it.
type recognition struct {
	pipeline.Recognition
	visit     *request
	onBreak   func()
	meter     *pipeline.UsageMeter
	engine    pipeline.Engine
	frames    atomic.Int64 // number of frames sent to the provider
	results   chan pipeline.Result
	stop      chan struct{}
	wg        sync.WaitGroup
	once      sync.Once
	responded bool // the provider has sent a result
}

// FinalizeOnly implements pipeline.FinalizeOnly.
func (r *recognition) FinalizeOnly() bool {
	x, ok := r.Recognition.(pipeline.FinalizeOnly)
	return ok && x.FinalizeOnly()
}

// SetBatch implements pipeline.Batcher.
func (r *recognition) SetBatch(d time.Duration) {
	if x, ok := r.Recognition.(pipeline.Batcher); ok {
		x.SetBatch(d)
	}
}

// Results implements pipeline.Recognition.
func (r *recognition) Results() <-chan pipeline.Result { return r.results }

// WriteFrame implements media.Sink.
func (r *recognition) WriteFrame(f media.Frame) error {
	err := r.Recognition.WriteFrame(f)
	if err == nil {
		r.frames.Add(1)
	}
	return err
}

// forward forwards results. The first one shows that the provider works.
func (r *recognition) forward() {
	defer close(r.results)
	for {
		var res pipeline.Result
		select {
		case next, more := <-r.Recognition.Results():
			if !more {
				return
			}
			res = next
		case <-r.stop: // the provider may never close its channel
			return
		}
		if !r.responded && !res.Unanswered {
			r.responded = true
			r.visit.note(Succeeded)
		}
		select {
		case r.results <- res:
		case <-r.stop:
			return
		}
	}
}

// Close implements pipeline.Recognition.
func (r *recognition) Close() error {
	err := r.Recognition.Close()
	r.once.Do(func() {
		close(r.stop)
		r.wg.Wait()
		r.meter.Add(pipeline.EngineUsage{
			Serves: "asr", Provider: r.engine.Provider, OrgID: r.engine.OrgID, Model: r.engine.Model,
			Requests: 1, Seconds: (time.Duration(r.frames.Load()) * media.FrameTime).Seconds(),
		})
		switch {
		case err != nil:
			r.visit.finish(err)
			r.onBreak()
		case r.responded:
			r.visit.finish(nil)
		default: // the provider never sent a result
			r.visit.finish(context.Canceled)
		}
	})
	return err
}
