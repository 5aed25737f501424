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

// CallStore stores the status and key of recordings. *store.Store implements it.
type CallStore interface {
	Call(ctx context.Context, orgID, id string) (control.Call, error)
	// SetRecording stores the status and key. RecordingFailed replaces only RecordingFinalizing.
	SetRecording(ctx context.Context, callID string, status control.RecordingStatus, key string) error
}

// Spool is the node's folder for recordings that are not in the bucket yet. It implements control.Recorder. As a
// control.EventHandler it uploads the recordings of ended calls.
type Spool struct {
	Dir    string
	Bucket Bucket
	Calls  CallStore
	// Timeout limits how long uploads are tried after the end of a call; 0 means 5 min.
	Timeout time.Duration
	// MinFree is the number of free bytes that a recording requires; 0 means DefaultMinFree, less than 0 means no
	// minimum.
	MinFree int64
	// Observe receives the result of each recording: Stored, Lost, or Truncated and then Stored. It may be nil.
	Observe func(result string)
	// WasSent reports whether this node placed the call recently. The database may have lost such a call and may get it
	// again, so its recording is kept. WasSent may be nil.
	WasSent func(callID string) bool
	Log     *slog.Logger

	space diskSpace
}

// Results of a recording, for Spool.Observe.
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

// legInterfaces are the optional interfaces that a recorded leg forwards to the original leg.
type legInterfaces interface {
	media.QualityReporter
	media.SignalingTracer
	media.Keypad
	media.Referrer
	media.Holder
}

// withLegInterfaces returns a leg that records, with the optional interfaces of the original leg.
func withLegInterfaces(t *recorder.Recording, leg media.Leg) media.Leg {
	if able, ok := leg.(legInterfaces); ok {
		return struct {
			*recorder.Recording
			legInterfaces
		}{t, able}
	}
	return t
}

// recordingFile is a recording whose Close returns the path of the file.
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

// Start repairs recordings that a crash left incomplete, and then runs Sweep. It must run before the first Record.
func (s *Spool) Start(ctx context.Context) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	if _, err := recorder.Recover(s.Dir); err != nil {
		// One damaged file must not prevent the start.
		s.log().WarnContext(ctx, "failed to recover a recording", "err", err)
	}
	return s.Sweep(ctx)
}

// Sweep uploads the complete recordings of ended calls, including recordings that HandleEvent gave up. It may run at
// any time.
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

// Content describes the recordings in a spool. They belong to live calls, or have not been uploaded yet.
type Content struct {
	Files  int
	Size   int64         // in bytes
	Oldest time.Duration // time since the last write to the oldest recording
}

// Content returns what is in the spool.
func (s *Spool) Content() (c Content) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return c // the first recording creates the folder
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.IsDir() {
			continue // the recording has just been uploaded
		}
		c.Files++
		c.Size += info.Size()
		c.Oldest = max(c.Oldest, time.Since(info.ModTime()))
	}
	return c
}

// HandleEvent implements control.EventHandler. It uploads the recording of a call. It gives up if the file is missing,
// or if uploads still fail after Timeout, so that the later steps of the event do not wait forever. A later Sweep may
// still upload the recording.
func (s *Spool) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded || e.Status == control.Failed { // an unanswered call has no recording
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
	// A sweep may have uploaded and removed the file since the call was read.
	if now, again := s.Calls.Call(ctx, "", e.CallID); again != nil || now.RecordingStatus != control.RecordingFinalizing {
		return again
	}
	s.log().ErrorContext(ctx, "recording lost", "call", c.ID, "err", err)
	s.observe(Lost)
	return s.Calls.SetRecording(ctx, c.ID, control.RecordingFailed, "")
}

func (s *Spool) isStored(ctx context.Context, key string) bool {
	f, err := s.Bucket.Open(ctx, key)
	if err != nil {
		return false
	}
	_ = f.Close() // closing cannot lose data, because nothing was read
	return true
}

// isBeingWritten reports whether the recording of a call is still open. This happens if the process was suspended and
// another node settled the call.
func (s *Spool) isBeingWritten(callID string) bool {
	info, err := os.Stat(s.path(callID) + recorder.Partial)
	return err == nil && time.Since(info.ModTime()) <= s.timeout()
}

func (s *Spool) timeout() time.Duration { return cmp.Or(s.Timeout, 5*time.Minute) }

// upload stores a recording in the bucket and deletes the local file.
func (s *Spool) upload(ctx context.Context, callID string) error {
	name, key := s.path(callID), "recordings/"+callID+".wav"
	f, err := os.Open(name)                                     //nolint:gosec // in the spool
	if errors.Is(err, fs.ErrNotExist) && s.isStored(ctx, key) { // the recording is stored, but the database lost its key
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
	// A sweep and HandleEvent may upload the same recording. Only one of them can delete the file.
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

func (s *Spool) path(callID string) string { return filepath.Join(s.Dir, callID+".wav") }

func (s *Spool) log() *slog.Logger { return cmp.Or(s.Log, slog.New(slog.DiscardHandler)) }
