// Package record tapes a leg: a stereo WAV file with what the party said on
// the left and what it was sent on the right, on one time line.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	flushEvery = 500 * time.Millisecond // what a crash can cost, and what the disk is spared
	saveEvery  = 4                      // flushes: 2 s is what a power cut can cost
	ringLen    = 1 << 15                // samples: 4 s at 8 kHz, 2 s at 16 kHz
	apart      = 200 * time.Millisecond // how far the channels may drift from each other
)

// A Tape is a leg that is being recorded. It is the leg it was made of, with
// its sound copied to a file that Close completes.
type Tape struct {
	media.Leg
	path string
	file *os.File

	left, right ring
	stop        chan struct{}
	done        chan struct{}
	once        sync.Once
	err         error // of the writer, after done

	pending [2][]int16 // writer's: samples that wait for the other channel
	bytes   []byte     // writer's: what is written next
}

// New records leg to path, which is there once Close returned; until then the
// file carries the ending Partial.
func New(path string, leg media.Leg) (*Tape, error) {
	f, err := os.OpenFile(path+Partial, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if _, err := f.Write(header(leg.Rate(), 0)); err != nil {
		return nil, errors.Join(fmt.Errorf("record: %w", err), f.Close(), os.Remove(path+Partial))
	}
	t := &Tape{Leg: leg, path: path, file: f, stop: make(chan struct{}), done: make(chan struct{})}
	t.left.buf, t.right.buf = make([]int16, ringLen), make([]int16, ringLen)
	go t.write()
	return t, nil
}

// ReadFrame implements media.Leg.
func (t *Tape) ReadFrame(f media.Frame) error {
	err := t.Leg.ReadFrame(f)
	if err == nil {
		t.left.write(f)
	}
	return err
}

// Arrived implements media.Arrival, where the leg below does.
func (t *Tape) Arrived() (time.Time, bool) {
	if a, ok := t.Leg.(media.Arrival); ok {
		return a.Arrived()
	}
	return time.Time{}, false
}

// Play implements media.Leg.
func (t *Tape) Play(feed media.Feed) {
	if feed == nil {
		feed = media.FeedFunc(func(f media.Frame, _ time.Time) { clear(f) })
	}
	t.Leg.Play(media.FeedFunc(func(f media.Frame, due time.Time) {
		feed.FillFrame(f, due)
		t.right.write(f)
	}))
}

// Path is where the recording is once Close returned.
func (t *Tape) Path() string { return t.path }

// Close ends the recording and completes the file. The leg must have ended. It
// may be called twice.
func (t *Tape) Close() error {
	t.once.Do(func() { close(t.stop) })
	<-t.done
	return t.err
}

func (t *Tape) write() {
	defer close(t.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var failed error
	saved := saver{file: t.file}
	for n, ending := 1, false; !ending; n++ {
		select {
		case <-tick.C:
		case <-t.stop:
			ending = true
		}
		if failed == nil {
			failed = t.flush(ending) // a failed tape keeps emptying its rings
		} else {
			t.left.read(nil)
			t.right.read(nil)
		}
		if n%saveEvery == 0 {
			saved.save()
		}
	}
	t.err = t.complete(errors.Join(failed, saved.wait()))
}

func (t *Tape) complete(failed error) error {
	if failed != nil {
		return errors.Join(fmt.Errorf("record: %w", failed), t.file.Close(), os.Remove(t.file.Name()))
	}
	err := errors.Join(finish(t.file, t.Rate()), t.file.Close())
	if err == nil {
		err = os.Rename(t.path+Partial, t.path)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(t.path))
	}
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// flush writes what both channels have. A channel that fell behind by more than
// apart (nothing was played yet, or the party's clock is slow) is given silence;
// at the ending the shorter one is.
func (t *Tape) flush(ending bool) error {
	l, r := t.left.read(t.pending[0]), t.right.read(t.pending[1])
	slack := int(apart * time.Duration(t.Rate()) / time.Second)
	if ending {
		slack = 0
	}
	if lag := len(r) - len(l); lag > slack {
		l = append(l, make([]int16, lag-slack)...)
	} else if -lag > slack {
		r = append(r, make([]int16, -lag-slack)...)
	}
	n := min(len(l), len(r))
	t.bytes = t.bytes[:0]
	for i := range n {
		t.bytes = binary.LittleEndian.AppendUint16(t.bytes, uint16(l[i])) //nolint:gosec // two's complement
		t.bytes = binary.LittleEndian.AppendUint16(t.bytes, uint16(r[i])) //nolint:gosec // likewise
	}
	t.pending[0], t.pending[1] = l[:copy(l, l[n:])], r[:copy(r, r[n:])]
	_, err := t.file.Write(t.bytes)
	return err
}
