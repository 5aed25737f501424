// Package recorder records a leg in a stereo WAV file. The left channel has the received audio, the right channel the
// sent audio; both are in sync.
package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
)

const (
	flushEvery = 500 * time.Millisecond // interval of writes: a crash loses at most this much audio
	syncEvery  = 4                      // number of writes per fsync: a power failure loses at most 2 s
	ringLen    = 1 << 15                // capacity in samples: 4 s at 8 kHz, 2 s at 16 kHz
	maxSkew    = 200 * time.Millisecond // maximum lag of one channel; with a larger lag the channel gets silence
)

// Recording is a leg that is being recorded. It passes everything on to the original leg, and writes the audio to a
// file. Close completes the file.
type Recording struct {
	media.Leg
	arrival media.Arrival // Leg; nil if it does not implement the interface

	path string
	file *os.File
	out  io.Writer // receives the audio; equals file, except in some tests

	left, right *ring
	stop        chan struct{}
	done        chan struct{}
	once        sync.Once
	err         error // error of the writer, valid after done is closed

	pending [2][]int16 // used by the writer only: samples that the other channel does not have yet
	bytes   []byte     // used by the writer only: bytes of the next write
}

// New records leg in the file path. Until Close returns, the file's name ends in Partial.
func New(path string, leg media.Leg) (*Recording, error) {
	f, err := os.OpenFile(path+Partial, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if _, err := f.Write(Header(leg.Rate(), 0)); err != nil {
		return nil, errors.Join(fmt.Errorf("record: %w", err), f.Close(), os.Remove(path+Partial))
	}
	r := &Recording{
		Leg: leg, path: path, file: f, out: f, left: newRing(), right: newRing(), stop: make(chan struct{}), done: make(chan struct{}),
	}
	r.arrival, _ = leg.(media.Arrival)
	go r.write()
	return r, nil
}

// ReadFrame implements media.Leg.
func (r *Recording) ReadFrame(f media.Frame) error {
	err := r.Leg.ReadFrame(f)
	if err == nil {
		r.left.write(f)
	}
	return err
}

// Arrived implements media.Arrival. It returns false if the original leg does not implement media.Arrival.
func (r *Recording) Arrived() (time.Time, bool) {
	if r.arrival == nil {
		return time.Time{}, false
	}
	return r.arrival.Arrived()
}

// Play implements media.Leg.
func (r *Recording) Play(feed media.Feed) {
	if feed == nil {
		feed = media.FeedFunc(func(f media.Frame, _ time.Time) { clear(f) })
	}
	r.Leg.Play(media.FeedFunc(func(f media.Frame, due time.Time) {
		feed.FillFrame(f, due)
		r.right.write(f)
	}))
}

// Path returns the path of the file. It is valid after Close.
func (r *Recording) Path() string { return r.path }

// ErrTruncated means that the end of a recording could not be written. The file contains all audio before.
var ErrTruncated = errors.New("record: the recording is truncated")

// Close ends the recording and completes the file. The leg must have ended before. Close may be called twice. If it
// returns ErrTruncated, the file exists.
func (r *Recording) Close() error {
	r.once.Do(func() { close(r.stop) })
	<-r.done
	return r.err
}

func (r *Recording) write() {
	defer close(r.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	var failed error
	saved := syncer{file: r.file}
	for n, ending := 1, false; !ending; n++ {
		select {
		case <-tick.C:
		case <-r.stop:
			ending = true
		}
		if failed == nil {
			failed = r.flush(ending) // after an error, the rings are still emptied
		} else {
			r.left.read(nil)
			r.right.read(nil)
		}
		if n%syncEvery == 0 {
			saved.start()
		}
	}
	r.err = r.complete(errors.Join(failed, saved.wait()))
}

// complete finishes the file. After a failed write, it keeps the audio that was written. It removes a file without
// audio.
func (r *Recording) complete(failed error) error {
	if info, err := r.file.Stat(); failed != nil && err == nil && info.Size() < HeaderLen+4 {
		return errors.Join(fmt.Errorf("record: %w", failed), r.file.Close(), os.Remove(r.file.Name()))
	}
	err := errors.Join(finish(r.file, r.Rate()), r.file.Close())
	if err == nil {
		err = os.Rename(r.path+Partial, r.path)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(r.path))
	}
	switch {
	case err != nil:
		return errors.Join(fmt.Errorf("record: %w", err), failed)
	case failed != nil:
		return fmt.Errorf("%w: %w", ErrTruncated, failed)
	default:
		return nil
	}
}

// flush writes the samples that both channels have. If a channel is behind by more than maxSkew, because it has no
// feed or the remote clock is slow, it gets silence. At the end of the recording, the shorter channel gets silence.
func (r *Recording) flush(ending bool) error {
	left, right := r.left.read(r.pending[0]), r.right.read(r.pending[1])
	slack := int(maxSkew * time.Duration(r.Rate()) / time.Second)
	if ending {
		slack = 0
	}
	if lag := len(right) - len(left); lag > slack {
		left = append(left, make([]int16, lag-slack)...)
	} else if -lag > slack {
		right = append(right, make([]int16, -lag-slack)...)
	}
	n := min(len(left), len(right))
	r.bytes = slices.Grow(r.bytes[:0], 4*n)[:4*n]
	for i, sample := range left[:n] {
		pair := uint32(uint16(sample)) | uint32(uint16(right[i]))<<16 //nolint:gosec // two's complement
		binary.LittleEndian.PutUint32(r.bytes[4*i:], pair)
	}
	r.pending[0], r.pending[1] = left[:copy(left, left[n:])], right[:copy(right, right[n:])]
	_, err := r.out.Write(r.bytes)
	return err
}
