// Package listener keeps a recognizer open for the length of a call.
package listener

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
	memory      = 500 // frames that are kept for the next recognizer: 10 s, in 80 kB at 8 kHz
	reopening   = 100 // frames that may come until it is told of them: 2 s
	openTimeout = 5 * time.Second
	firstPause  = 200 * time.Millisecond // before a broken recognizer is opened again
	longPause   = 2 * time.Second
)

// A Listener keeps a recognizer open for the length of a call. The newest sound
// is remembered: what the recognizer that broke had not understood for good,
// and what was said while there was none, is told to the next one.
type Listener struct {
	recognizer pipeline.Recognizer
	stream     pipeline.Stream
	log        *slog.Logger
	results    chan Heard
	broke      chan error
	opens      chan bool
	mute       chan struct{} // the open recognizer is deaf: open another

	open    atomic.Pointer[opened]
	final   atomic.Int64 // frames of the call that are understood for good
	read    atomic.Int64 // frames of the call so far; the ear counts
	settled atomic.Int64 // what was said before is of no account, Unix nanoseconds

	// The ear's own.
	past  []byte      // a ring of the newest frames, in µ-law: that is half as much
	frame media.Frame // one of them, as it was
	last  time.Time   // when the newest was read
	told  *opened     // who was told of the past
}

// New returns a listener that asks r for what stream says.
func New(r pipeline.Recognizer, stream pipeline.Stream, log *slog.Logger) *Listener {
	return &Listener{
		recognizer: r, stream: stream, log: log, results: make(chan Heard), broke: make(chan error),
		opens: make(chan bool), mute: make(chan struct{}, 1),
	}
}

// Results tells what was understood. Whoever reads it always comes back for more.
func (l *Listener) Results() <-chan Heard { return l.results }

// Broke tells why a recognizer broke. Another is being opened then.
func (l *Listener) Broke() <-chan error { return l.broke }

// Opens tells that a recognizer is open; true: it tells no words before it is
// asked.
func (l *Listener) Opens() <-chan bool { return l.opens }

// Heard is a result, and when the recognizer's clock began; zero where the
// result has no times.
type Heard struct {
	pipeline.Result
	Zero time.Time
}

// opened is a recognizer and where its stream begins.
type opened struct {
	pipeline.Recognition
	first atomic.Int64 // frame of the call
	zero  atomic.Int64 // its time, Unix nanoseconds
	told  atomic.Bool  // it was told of the past
	owed  atomic.Bool  // it is to be asked for what is final, once it was

	partial pipeline.Result // the newest; of whoever listens to it
}

// finalize asks for what is final of the sound so far, the past included.
func (o *opened) finalize() {
	o.owed.Store(true)
	if o.told.Load() && o.owed.Swap(false) {
		_ = o.Finalize() // its Results end when it broke
	}
}

// Listen opens recognizers until ctx ends.
func (l *Listener) Listen(ctx context.Context) {
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
		l.log.Warn("recognizer broke", "err", err)
		select {
		case l.broke <- err:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, longPause)
	}
}

// once opens a recognizer and passes its results on until it breaks.
func (l *Listener) once(ctx context.Context) error {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	rec, err := l.recognizer.Recognize(opening, l.stream)
	if err != nil {
		return err
	}
	select {
	case <-l.mute: // it was another's
	default:
	}
	o := &opened{Recognition: rec}
	l.open.Store(o)
	defer l.open.Store(nil)
	select {
	case l.opens <- reticent(rec):
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
		case <-l.mute:
			l.salvage(ctx, o)
			return errors.Join(errDeaf, rec.Close())
		case <-ctx.Done():
			return rec.Close()
		}
	}
}

func reticent(rec pipeline.Recognition) bool {
	r, ok := rec.(pipeline.Reticent)
	return ok && r.Reticent()
}

// pass tells a result.
func (l *Listener) pass(ctx context.Context, h Heard) {
	select {
	case l.results <- h:
	case <-ctx.Done():
	}
}

// salvage tells what a recognizer that broke had understood of sound that is too
// old to be told to the next: it counts for good.
func (l *Listener) salvage(ctx context.Context, o *opened) {
	var kept pipeline.Result
	oldest := l.read.Load() - memory + reopening
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

// place puts a result on the call's clock.
func (l *Listener) place(o *opened, r pipeline.Result) Heard {
	h := Heard{Result: r}
	o.partial = pipeline.Result{}
	if !r.Final {
		o.partial = r
	}
	if r.End == 0 {
		return h
	}
	upTo := r.End
	if n := len(r.Words); r.Unanswered && n > 0 {
		upTo = r.Words[n-1].End // what comes after it is told to the next
	}
	if r.Final && (!r.Unanswered || r.Text != "") {
		l.final.Store(o.first.Load() + int64(upTo/media.FrameTime))
	}
	if zero := o.zero.Load(); zero != 0 {
		h.Zero = time.Unix(0, zero)
	}
	return h
}

var errDeaf = errors.New("recognizer did not answer")

// Renew opens another recognizer in place of one that does not answer. It is not
// told what was said before settled: that is answered, in whatever way.
func (l *Listener) Renew(settled time.Time) {
	l.settled.Store(settled.UnixNano())
	select {
	case l.mute <- struct{}{}:
	default: // one is being opened already
	}
}

// Write passes a frame on. It belongs to the ear and never waits.
func (l *Listener) Write(f media.Frame) {
	l.keep(f)
	rec := l.open.Load()
	if rec == nil {
		return
	}
	if rec == l.told {
		_ = rec.WriteFrame(f) // its Results end when it broke
		return
	}
	l.told = rec
	read := l.read.Load()
	since := l.last.Sub(time.Unix(0, l.settled.Load())) / media.FrameTime
	from := min(read-1, max(l.final.Load(), read-memory, read-int64(since), 0))
	rec.first.Store(from)
	rec.zero.Store(l.last.Add(-time.Duration(read-from) * media.FrameTime).UnixNano())
	for n := from; n < read; n++ {
		codec.PCMU{}.Decode(l.frame, l.at(n))
		_ = rec.WriteFrame(l.frame) // likewise
	}
	if rec.told.Store(true); rec.owed.Load() {
		rec.finalize()
	}
}

// keep remembers f; the oldest sound goes.
func (l *Listener) keep(f media.Frame) {
	if l.past == nil {
		l.past, l.frame = make([]byte, memory*len(f)), make(media.Frame, len(f))
	}
	codec.PCMU{}.Encode(l.at(l.read.Load()), f)
	l.read.Add(1)
	l.last = time.Now()
}

// at is where a frame of the call is kept.
func (l *Listener) at(n int64) []byte {
	i := int(n%memory) * len(l.frame)
	return l.past[i : i+len(l.frame)]
}

// Finalize asks for what is open; without a recognizer there is nothing.
func (l *Listener) Finalize() {
	if rec := l.open.Load(); rec != nil {
		rec.finalize()
	}
}

// From is what was said from a moment on, and when that begins: a recognizer may
// go on, in the same breath, with words that were answered already. It is false
// where nothing is, or the recognizer tells no words.
func (h Heard) From(at time.Time) (text string, begins time.Time, ok bool) {
	said := func(w pipeline.Word) time.Time { return h.Zero.Add(w.Start) }
	n := slices.IndexFunc(h.Words, func(w pipeline.Word) bool { return !said(w).Before(at) })
	switch {
	case n < 0:
		return "", time.Time{}, false
	case n == 0:
		return h.Text, said(h.Words[0]), true // its text may be written better than its words
	}
	var texts []string
	for _, w := range h.Words[n:] {
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, " "), said(h.Words[n]), true
}
