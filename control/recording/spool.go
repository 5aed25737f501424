package recording

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	// SetJoined stores the key of a recording that was joined from segments, if no recording of the call is stored. It
	// reports whether the call now has this recording.
	SetJoined(ctx context.Context, callID, key string) (bool, error)
	// CallNode returns the data directory of the node that ran a call, and the time since its last sign of life.
	CallNode(ctx context.Context, callID string) (home string, away time.Duration, err error)
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
	// Observe receives the result of each recording: Stored, Joined, Lost, or Truncated and then Stored. It may be nil.
	Observe func(result string)
	// WasSent reports whether this node placed the call recently. The database may have lost such a call and may get it
	// again, so its recording is kept. WasSent may be nil.
	WasSent func(callID string) bool
	// Encoder compresses recordings; nil stores WAV. A recording that cannot be compressed is stored as WAV.
	Encoder *Encoder
	// Segment is the duration of the segments of live calls that Run uploads; 0 disables them.
	Segment time.Duration
	// Home is this node's data directory, as in CallStore.CallNode. Takeover is the time without a sign of life after
	// which another node stores the recordings of a node; 0 means control.HomeTimeout.
	Home     string
	Takeover time.Duration
	Log      *slog.Logger

	space    diskSpace
	segments segmenter
	joins    slots
	mu       sync.Mutex
	busy     map[string]bool // calls whose recordings are being uploaded
}

// Results of a recording, for Spool.Observe.
const (
	Stored    = "stored"
	Truncated = "truncated"
	Joined    = "joined"
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
	live := &liveRecording{id: callID, file: s.path(callID) + recorder.Partial, rate: leg.Rate(), began: time.Now()}
	if s.Segment > 0 {
		s.segments.add(live)
	}
	return withLegInterfaces(t, leg), recordingFile{t, s, live}, nil
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
	live  *liveRecording
}

// Close implements control.Recording. If the file is lost, but the bucket has segments, the recording is truncated.
func (t recordingFile) Close() (string, error) {
	t.spool.segments.remove(t.live)
	t.live.close()
	err := t.t.Close()
	switch {
	case errors.Is(err, recorder.ErrTruncated), err != nil && t.live.stored > 0:
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
func (s *Spool) Sweep(ctx context.Context) error { return s.sweep(ctx, 0) }

// sweepFailures is the number of failed uploads in a row after which a sweep ends, because the bucket is unavailable.
const sweepFailures = 3

// sweep uploads the recordings that are at least as old as age.
func (s *Spool) sweep(ctx context.Context, age time.Duration) error {
	names, err := filepath.Glob(filepath.Join(s.Dir, "call_*.wav"))
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	failed := 0
	for _, name := range names {
		if info, gone := os.Stat(name); age > 0 && (gone != nil || time.Since(info.ModTime()) < age) {
			continue
		}
		id := strings.TrimSuffix(filepath.Base(name), ".wav")
		if err = s.sweepOne(ctx, id); err == nil || errors.Is(err, errBusy) {
			failed = 0
			continue
		}
		s.log().WarnContext(ctx, "failed to upload a recording; retrying later", "call", id, "err", err)
		if failed++; failed == sweepFailures {
			break
		}
	}
	return nil
}

func (s *Spool) sweepOne(ctx context.Context, id string) error {
	c, err := s.Calls.Call(ctx, "", id)
	if err == nil && c.Status.Over() {
		_, err = s.Calls.Call(ctx, c.OrgID, id) // does not find erased calls
	}
	switch {
	case control.CodeOf(err) == control.CodeCallNotFound && c.ID == "" && s.WasSent != nil && s.WasSent(id):
		return nil
	case control.CodeOf(err) == control.CodeCallNotFound:
		return os.Remove(s.path(id)) // the call was deleted or erased
	case err == nil && c.Status.Over() && c.RecordingStatus != control.RecordingDisabled:
		return s.upload(ctx, c)
	}
	return err
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

// HandleEvent implements control.EventHandler. It uploads the recording of a call. It gives up if the file and all
// segments are missing. If uploads still fail after Timeout, it returns, so that the later steps of the event do not
// wait for the bucket; Run continues to upload the recording.
func (s *Spool) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded || e.Status == control.Failed { // an unanswered call has no recording
		return nil
	}
	c, err := s.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.RecordingStatus != control.RecordingFinalizing {
		return err
	}
	err = s.upload(ctx, c)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case gone && !s.isBeingWritten(c.ID):
		return s.lose(ctx, c.ID, err)
	case err == nil, gone, time.Since(e.At) <= s.timeout():
		return err
	}
	s.log().WarnContext(ctx, "recording is not stored yet; retrying every minute", "call", c.ID, "err", err)
	return nil
}

// lose records that a recording is lost, unless it has been stored since.
func (s *Spool) lose(ctx context.Context, callID string, why error) error {
	// A sweep may have uploaded and removed the file since the call was read.
	if now, err := s.Calls.Call(ctx, "", callID); err != nil || now.RecordingStatus != control.RecordingFinalizing {
		return err
	}
	s.log().ErrorContext(ctx, "recording lost", "call", callID, "err", why)
	s.observe(Lost)
	return s.Calls.SetRecording(ctx, callID, control.RecordingFailed, "")
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

var errBusy = errors.New("the recording is being uploaded")

// lock marks the recording of a call as being uploaded. It returns errBusy if it is marked already.
func (s *Spool) lock(callID string) (unlock func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[callID] {
		return nil, errBusy
	}
	if s.busy == nil {
		s.busy = map[string]bool{}
	}
	s.busy[callID] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, callID)
	}, nil
}

// upload stores a recording in the bucket and deletes the local file and the segments. If there is no file, it joins
// the segments; if there are none either, the error is fs.ErrNotExist.
func (s *Spool) upload(ctx context.Context, c control.Call) error {
	unlock, err := s.lock(c.ID)
	if err != nil {
		return err
	}
	defer unlock()
	name := s.path(c.ID)
	f, err := os.Open(name) //nolint:gosec // in the spool
	switch {
	case err == nil:
		defer func() { _ = f.Close() }()
	case !errors.Is(err, fs.ErrNotExist) || s.isBeingWritten(c.ID):
		return fmt.Errorf("recording: %w", err)
	default:
		return s.find(ctx, c)
	}
	rate, size := measure(f)
	if longer, err := s.isLonger(ctx, c, size); err != nil {
		return err
	} else if !longer {
		return s.remove(name)
	}
	body, key := s.compress(ctx, f, c.ID)
	if body != f {
		defer func() { _ = body.Close() }()
	}
	if err := s.Bucket.Put(ctx, key, body); err != nil {
		return err
	}
	if err := s.Calls.SetRecording(ctx, c.ID, control.RecordingReady, key); err != nil {
		return err
	}
	s.observe(Stored)
	s.deleteSegments(ctx, c, rate, size)
	return s.remove(name)
}

// find stores the recording of a call whose file is missing. The recording may be in the bucket, although the database
// lost its key. Otherwise it is joined from segments.
func (s *Spool) find(ctx context.Context, c control.Call) error {
	for _, ext := range []string{wavExt, opusExt} {
		if key := recordingKey(c.ID, ext); s.isStored(ctx, key) {
			return s.Calls.SetRecording(ctx, c.ID, control.RecordingReady, key)
		}
	}
	return s.join(ctx, c)
}

// Extensions of the keys of recordings.
const (
	wavExt  = ".wav"
	opusExt = ".opus"
)

func recordingKey(callID, ext string) string { return "recordings/" + callID + ext }

// compress returns the file to store for the recording in f, and its key. The file is f itself if there is no encoder
// or if the encoder fails.
func (s *Spool) compress(ctx context.Context, f *os.File, callID string) (*os.File, string) {
	if s.Encoder != nil {
		body, err := s.Encoder.encode(ctx, f, s.Dir)
		if err == nil {
			return body, recordingKey(callID, opusExt)
		}
		s.log().WarnContext(ctx, "failed to compress a recording; storing it as WAV", "call", callID, "err", err)
		_, _ = f.Seek(0, io.SeekStart) // cannot fail; the program has moved the offset that it shares with this process
	}
	return f, recordingKey(callID, wavExt)
}

// isLonger reports whether the local file of a recording is longer than the recording that another node joined from
// segments while this node was away. It is, unless a power failure truncated the file. The longer one replaces the other.
func (s *Spool) isLonger(ctx context.Context, c control.Call, size int64) (bool, error) {
	if !strings.HasPrefix(c.RecordingKey, SegmentPrefix) {
		return true, nil
	}
	joined, err := s.Bucket.Open(ctx, c.RecordingKey)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	length, err := joined.Seek(0, io.SeekEnd)
	return size > length, errors.Join(err, joined.Close())
}

// measure returns the sample rate and the length of the file of a recording. The rate is 0 if the file has no header.
func measure(f *os.File) (rate int, size int64) {
	head := make([]byte, recorder.HeaderLen)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	if _, err := f.ReadAt(head, 0); err == nil {
		rate, _, _ = recorder.ParseHeader(head)
	}
	return rate, size
}

// remove removes the file of a recording that is stored.
func (s *Spool) remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

func (s *Spool) path(callID string) string { return filepath.Join(s.Dir, callID+".wav") }

func (s *Spool) log() *slog.Logger { return cmp.Or(s.Log, slog.New(slog.DiscardHandler)) }
