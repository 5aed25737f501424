package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/recorder"
)

// CallStore stores the status and key of a recording; *store.Store implements it.
type CallStore interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	// SetRecording with RecordingFailed changes nothing unless the recording is still being finalized.
	SetRecording(ctx context.Context, callID string, status control.RecordingStatus, key string) error
}

// Spool is the node's folder of recordings. It implements control.Recorder, and
// control.EventHandler to upload finished recordings.
type Spool struct {
	Dir    string
	Bucket Bucket
	Calls  CallStore
	// Timeout bounds the wait for the recording after a call's end; 0 means 5 min.
	Timeout time.Duration
	// MinFree is the free space required to record, in bytes; 0 means DefaultMinFree, less than 0 none.
	MinFree int64
	// Observe, if set, receives the result of each recording: Stored, Truncated (and then Stored), or Lost.
	Observe func(result string)
	// WasSent, if set, reports whether this node placed a call recently: if the database does not know the call, it may be
	// written again.
	WasSent func(callID string) bool
	Log     *slog.Logger

	space diskSpace
}

// Results of recordings.
const (
	Stored    = "stored"
	Truncated = "truncated"
	Lost      = "lost"
)

func (s *Spool) observe(result string) {
	if s.Observe != nil {
		s.Observe(result)
	}
}

// Record implements control.Recorder.
func (s *Spool) Record(callID string, leg media.Leg) (media.Leg, control.Recording, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		s.observe(Lost)
		return nil, nil, fmt.Errorf("record: %w", err)
	}
	t, err := recorder.New(s.path(callID), leg)
	if err != nil {
		s.observe(Lost)
		return nil, nil, err
	}
	return withLegInterfaces(t, leg), recordingFile{t, s}, nil
}

// legInterfaces are the optional interfaces of a leg that its recording passes on.
type legInterfaces interface {
	media.QualityReporter
	media.SignalingTracer
	media.Keypad
	media.Referrer
	media.Holder
}

// withLegInterfaces returns a recording with the optional interfaces of its leg.
func withLegInterfaces(t *recorder.Recording, leg media.Leg) media.Leg {
	if able, ok := leg.(legInterfaces); ok {
		return struct {
			*recorder.Recording
			legInterfaces
		}{t, able}
	}
	return t
}

// A recordingFile is a recording that returns its path when closed.
type recordingFile struct {
	t     *recorder.Recording
	spool *Spool
}

// Close implements control.Recording.
func (t recordingFile) Close() (string, error) {
	err := t.t.Close()
	switch {
	case errors.Is(err, recorder.ErrTruncated):
		err = fmt.Errorf("%w: %w", control.ErrTruncated, err)
		t.spool.observe(Truncated)
	case err != nil:
		t.spool.observe(Lost)
	}
	return t.t.Path(), err
}

// Start repairs recordings that a crash left incomplete, and sweeps. Call it before the first Record.
func (s *Spool) Start(ctx context.Context) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	if _, err := recorder.Recover(s.Dir); err != nil {
		// One broken file must not prevent the start.
		s.log().WarnContext(ctx, "failed to recover a recording", "err", err)
	}
	return s.Sweep(ctx)
}

// Sweep uploads the complete recordings of ended calls, for example those that were given up while the bucket was
// unavailable. It may be called at any time.
func (s *Spool) Sweep(ctx context.Context) error {
	names, err := filepath.Glob(filepath.Join(s.Dir, "call_*.wav"))
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	for _, name := range names {
		id := strings.TrimSuffix(filepath.Base(name), ".wav")
		c, err := s.Calls.Call(ctx, "", id)
		switch {
		case control.CodeOf(err) == control.CodeCallNotFound && s.WasSent != nil && s.WasSent(id):
			err = nil
		case control.CodeOf(err) == control.CodeCallNotFound:
			err = os.Remove(name) // the call was deleted
		case err == nil && c.Status.Over() && c.RecordingStatus != control.RecordingDisabled:
			err = s.upload(ctx, id)
		}
		if err != nil {
			s.log().WarnContext(ctx, "failed to upload a recording; retrying later", "call", id, "err", err)
		}
	}
	return nil
}

// HandleEvent implements control.EventHandler: it uploads the recording of a call. A missing recording is given up after
// Timeout, so that later steps are not delayed forever; a later sweep uploads it if it appears.
func (s *Spool) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded || e.Status == control.Failed { // not answered
		return nil
	}
	c, err := s.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.RecordingStatus != control.RecordingFinalizing {
		return err
	}
	err = s.upload(ctx, c.ID)
	gone := errors.Is(err, fs.ErrNotExist)
	if err == nil || gone && s.isBeingWritten(c.ID) || !gone && time.Since(e.At) <= s.timeout() {
		return err
	}
	// A sweep may have uploaded and removed it since the call was read.
	if now, again := s.Calls.Call(ctx, "", e.CallID); again != nil || now.RecordingStatus != control.RecordingFinalizing {
		return again
	}
	s.log().ErrorContext(ctx, "recording lost", "call", c.ID, "err", err)
	s.observe(Lost)
	return s.Calls.SetRecording(ctx, c.ID, control.RecordingFailed, "")
}

// isStored reports whether the bucket has a recording.
func (s *Spool) isStored(ctx context.Context, key string) bool {
	f, err := s.Bucket.Open(ctx, key)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was read from it
	return true
}

// isBeingWritten reports whether a recording is still being written, for example if the process was stopped for so long
// that another node settled its call.
func (s *Spool) isBeingWritten(callID string) bool {
	info, err := os.Stat(s.path(callID) + recorder.Partial)
	return err == nil && time.Since(info.ModTime()) <= s.timeout()
}

func (s *Spool) timeout() time.Duration { return cmp.Or(s.Timeout, 5*time.Minute) }

// upload stores a recording and deletes the file.
func (s *Spool) upload(ctx context.Context, callID string) error {
	name, key := s.path(callID), "recordings/"+callID+".wav"
	f, err := os.Open(name)                                     //nolint:gosec // in the spool
	if errors.Is(err, fs.ErrNotExist) && s.isStored(ctx, key) { // but the database lost it
		return s.Calls.SetRecording(ctx, callID, control.RecordingReady, key)
	}
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := s.Bucket.Put(ctx, key, f); err != nil {
		return err
	}
	if err := s.Calls.SetRecording(ctx, callID, control.RecordingReady, key); err != nil {
		return err
	}
	s.observe(Stored)
	// A sweep and HandleEvent may upload the same recording; one of them deletes it.
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

func (s *Spool) path(callID string) string { return filepath.Join(s.Dir, callID+".wav") }

func (s *Spool) log() *slog.Logger { return cmp.Or(s.Log, slog.New(slog.DiscardHandler)) }
