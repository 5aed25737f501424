package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	backlogTime = 2 * time.Second // of sound kept while no recognizer is open
	openTimeout = 5 * time.Second
	firstPause  = 200 * time.Millisecond // before a broken recognizer is opened again
	longPause   = 2 * time.Second
)

// A listener keeps a recognizer open for the length of a call. What is said
// while there is none is kept, up to backlogTime, and told to the next one.
type listener struct {
	recognizer Recognizer
	stream     Stream
	log        *slog.Logger
	results    chan Result
	broke      chan error
	mute       chan struct{} // the open recognizer is deaf: open another

	open atomic.Pointer[opened]

	backlog []int16 // the ear's: the newest sound that no recognizer heard
	told    *opened // the ear's: who was told the backlog
}

type opened struct{ Recognition }

// listen opens recognizers until ctx ends.
func (l *listener) listen(ctx context.Context) {
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
func (l *listener) once(ctx context.Context) error {
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
	l.open.Store(&opened{rec})
	defer l.open.Store(nil)
	for {
		select {
		case r, ok := <-rec.Results():
			if !ok {
				return rec.Close()
			}
			select {
			case l.results <- r:
			case <-ctx.Done():
				return rec.Close()
			}
		case <-l.mute:
			return errors.Join(errDeaf, rec.Close())
		case <-ctx.Done():
			return rec.Close()
		}
	}
}

var errDeaf = errors.New("recognizer did not answer")

// renew opens another recognizer in place of one that does not answer.
func (l *listener) renew() {
	select {
	case l.mute <- struct{}{}:
	default: // one is being opened already
	}
}

// write passes a frame on. It belongs to the ear and never waits.
func (l *listener) write(f media.Frame) {
	rec := l.open.Load()
	if rec == nil {
		l.keep(f)
		return
	}
	if rec != l.told {
		l.told = rec
		for i := 0; i+len(f) <= len(l.backlog); i += len(f) {
			_ = rec.WriteFrame(l.backlog[i : i+len(f)]) // its Results end when it broke
		}
		l.backlog = l.backlog[:0]
	}
	_ = rec.WriteFrame(f)
}

// keep adds f to the backlog; the oldest sound goes when it is full.
func (l *listener) keep(f media.Frame) {
	if most := int(backlogTime/media.FrameTime) * len(f); len(l.backlog) >= most {
		l.backlog = l.backlog[:copy(l.backlog, l.backlog[len(f):])]
	}
	l.backlog = append(l.backlog, f...)
}

// finalize asks for what is open; without a recognizer there is nothing.
func (l *listener) finalize() {
	if rec := l.open.Load(); rec != nil {
		_ = rec.Finalize() // its Results end when it broke
	}
}
