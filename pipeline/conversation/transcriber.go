package conversation

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/pipeline"
)

const (
	keptFrames    = 500 // frames kept for the next recognizer: 10 s, 80 kB at 8 kHz
	openingFrames = 100 // reserve for frames that arrive while the next recognizer opens: 2 s
	openTimeout   = 5 * time.Second
	firstPause    = 200 * time.Millisecond // pause before another recognizer is opened
	maxPause      = 2 * time.Second
)

// A transcriber transcribes a call and opens another recognizer after each failure. It keeps the newest audio, so
// that the next recognizer receives the part that has no final text.
type transcriber struct {
	recognizer pipeline.Recognizer
	stream     pipeline.Stream
	log        *slog.Logger
	results    chan transcript
	failures   chan error
	opened     chan bool
	renew      chan struct{} // receives a value if another recognizer must be opened

	open    atomic.Pointer[stream]
	final   atomic.Int64 // number of frames of the call that have final text
	read    atomic.Int64 // number of frames of the call so far
	settled atomic.Int64 // audio from before this time is not needed; Unix nanoseconds

	// These fields belong to the goroutine that reads the leg.
	past    []byte      // ring of the newest frames, in µ-law to halve its size
	frame   media.Frame // one decoded frame of past
	last    time.Time   // when the newest frame arrived
	current *stream     // stream that received past
	batch   time.Duration
}

func newTranscriber(r pipeline.Recognizer, stream pipeline.Stream, log *slog.Logger) *transcriber {
	return &transcriber{
		recognizer: r, stream: stream, log: log, results: make(chan transcript), failures: make(chan error),
		opened: make(chan bool), renew: make(chan struct{}, 1),
	}
}

// Results returns the results. The reader must read all of them.
func (l *transcriber) Results() <-chan transcript { return l.results }

// Failures returns errors of recognizers. After each, another recognizer is opened.
func (l *transcriber) Failures() <-chan error { return l.failures }

// Opened receives a value for each recognizer that was opened; true if it sends only final text.
func (l *transcriber) Opened() <-chan bool { return l.opened }

// A transcript is a result of a recognizer. Zero is the time from which the times of the result count; it is the zero
// time if the result has no times.
type transcript struct {
	pipeline.Result
	Zero time.Time
}

// A stream is an open recognizer.
type stream struct {
	pipeline.Recognition
	first atomic.Int64 // number of the stream's first frame within the call
	zero  atomic.Int64 // time of the first frame, in Unix nanoseconds
	ready atomic.Bool  // the stream has received the kept audio
	owed  atomic.Bool  // Finalize must be called once the stream is ready

	partial pipeline.Result // newest partial result; belongs to the reader of the results
}

// finalize requests the final text of the audio so far, including the kept audio.
func (o *stream) finalize() {
	o.owed.Store(true)
	if o.ready.Load() && o.owed.Swap(false) {
		_ = o.Finalize() // after a failure the Results of the stream end
	}
}

func (o *stream) setBatch(d time.Duration) {
	if x, ok := o.Recognition.(pipeline.Batcher); ok {
		x.SetBatch(d)
	}
}

// Listen opens recognizers until ctx ends, one at a time.
func (l *transcriber) Listen(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := l.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			pause = firstPause
		}
		l.log.Warn("recognizer failed", "err", err)
		select {
		case l.failures <- err:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxPause)
	}
}

// once opens a recognizer and delivers its results until it fails.
func (l *transcriber) once(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	rec, err := l.recognizer.Recognize(opening, l.stream)
	if err != nil {
		return err
	}
	select {
	case <-l.renew: // the request was for an earlier recognizer
	default:
	}
	o := &stream{Recognition: rec}
	l.open.Store(o)
	defer l.open.Store(nil)
	select {
	case l.opened <- isFinalOnly(rec):
	case <-ctx.Done():
	}
	for {
		select {
		case r, ok := <-rec.Results():
			if !ok {
				l.salvage(ctx, o)
				return rec.Close()
			}
			l.pass(ctx, l.place(o, r))
		case <-l.renew:
			l.salvage(ctx, o)
			return errors.Join(errNoAnswer, rec.Close())
		case <-ctx.Done():
			return rec.Close()
		}
	}
}

func isFinalOnly(rec pipeline.Recognition) bool {
	r, ok := rec.(pipeline.FinalizeOnly)
	return ok && r.FinalizeOnly()
}

func (l *transcriber) pass(ctx context.Context, h transcript) {
	select {
	case l.results <- h:
	case <-ctx.Done():
	}
}

// salvage delivers the partial text of audio that may be too old to be kept for the next recognizer. The text counts
// as final.
func (l *transcriber) salvage(ctx context.Context, o *stream) {
	var kept pipeline.Result
	oldest := l.read.Load() - keptFrames + openingFrames
	for _, w := range o.partial.Words {
		if o.first.Load()+int64(w.End/media.FrameTime) > oldest {
			break
		}
		kept.Words = append(kept.Words, w)
		kept.Text = strings.TrimSpace(kept.Text + " " + w.Text)
		kept.Start, kept.End, kept.Final = kept.Words[0].Start, w.End, true
	}
	if kept.Final {
		l.pass(ctx, l.place(o, kept))
	}
}

// place returns r with its Zero. It stores up to which frame the call has final text.
func (l *transcriber) place(o *stream, r pipeline.Result) transcript {
	h := transcript{Result: r}
	o.partial = pipeline.Result{}
	if !r.Final {
		o.partial = r
	}
	if r.End == 0 {
		return h
	}
	upTo := r.End
	if n := len(r.Words); r.Unanswered && n > 0 {
		upTo = r.Words[n-1].End // the next recognizer receives the audio after the last word
	}
	if r.Final && (!r.Unanswered || r.Text != "") {
		l.final.Store(o.first.Load() + int64(upTo/media.FrameTime))
	}
	if zero := o.zero.Load(); zero != 0 {
		h.Zero = time.Unix(0, zero)
	}
	return h
}

var errNoAnswer = errors.New("the recognizer did not answer")

// Renew replaces a recognizer that does not answer. The next recognizer receives no audio from before settled.
func (l *transcriber) Renew(settled time.Time) {
	l.settled.Store(settled.UnixNano())
	select {
	case l.renew <- struct{}{}:
	default: // another recognizer is already being opened
	}
}

// Write passes a frame to the recognizer. It belongs to the goroutine that reads the leg and
// never blocks.
func (l *transcriber) Write(f media.Frame) {
	l.keep(f)
	rec := l.open.Load()
	if rec == nil {
		return
	}
	if rec == l.current {
		_ = rec.WriteFrame(f) // after a failure the Results of the stream end
		return
	}
	l.current = rec
	read := l.read.Load()
	since := l.last.Sub(time.Unix(0, l.settled.Load())) / media.FrameTime
	from := min(read-1, max(l.final.Load(), read-keptFrames, read-int64(since), 0))
	rec.first.Store(from)
	rec.zero.Store(l.last.Add(-time.Duration(read-from) * media.FrameTime).UnixNano())
	for n := from; n < read; n++ {
		codec.PCMU{}.Decode(l.frame, l.at(n))
		_ = rec.WriteFrame(l.frame) // after a failure the Results of the stream end
	}
	rec.setBatch(l.batch)
	if rec.ready.Store(true); rec.owed.Load() {
		rec.finalize()
	}
}

// SetBatch sets how much audio the recognizer may collect for a message. It belongs to the
// goroutine that reads the leg and never blocks.
func (l *transcriber) SetBatch(d time.Duration) {
	if l.batch = d; l.current != nil {
		l.current.setBatch(d)
	}
}

func (l *transcriber) keep(f media.Frame) {
	if l.past == nil {
		l.past, l.frame = make([]byte, keptFrames*len(f)), make(media.Frame, len(f))
	}
	codec.PCMU{}.Encode(l.at(l.read.Load()), f)
	l.read.Add(1)
	l.last = time.Now()
}

func (l *transcriber) at(n int64) []byte {
	i := int(n%keptFrames) * len(l.frame)
	return l.past[i : i+len(l.frame)]
}

// Finalize requests the final text from the recognizer. Without an open recognizer it does
// nothing.
func (l *transcriber) Finalize() {
	if rec := l.open.Load(); rec != nil {
		rec.finalize()
	}
}

// From returns the words that began at or after at, and the start of the first. It leaves out earlier words, because
// a result may repeat answered words. ok is false if no words are left.
func (h transcript) From(at time.Time) (text string, begins time.Time, ok bool) {
	said := func(w pipeline.Word) time.Time { return h.Zero.Add(w.Start) }
	n := slices.IndexFunc(h.Words, func(w pipeline.Word) bool { return !said(w).Before(at) })
	switch {
	case n < 0:
		return "", time.Time{}, false
	case n == 0:
		return h.Text, said(h.Words[0]), true // the text may be better formatted than the words
	}
	var texts []string
	for _, w := range h.Words[n:] {
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, " "), said(h.Words[n]), true
}
