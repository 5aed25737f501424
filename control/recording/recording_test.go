package recording_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/media"
)

func TestFolder(t *testing.T) {
	f := &recording.Folder{Dir: t.TempDir()}
	ctx := t.Context()
	if err := f.Put(ctx, "a/b.wav", strings.NewReader("sound")); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if err := f.Put(ctx, "a/b.wav", broken); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a broken source: %v", err)
	}
	r, err := f.Open(ctx, "a/b.wav")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if text, err := io.ReadAll(r); err != nil || string(text) != "sound" {
		t.Errorf("%q %v: a broken source replaced what was there", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(f.Dir, "a", ".part-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := errors.Join(f.Link("a/b.wav", "a/c.wav"), f.Put(ctx, "a/b.wav", strings.NewReader("other"))); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := f.Delete(ctx, "a/b.wav"); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(f.Dir, "a", "c.wav")); err != nil || string(text) != "sound" {
		t.Errorf("%q %v: the second key of a file that was replaced and deleted", text, err)
	}
	if err := f.Link("a/c.wav", "../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a link that leads out: %v", err)
	}
	if _, err := f.Open(ctx, "a/b.wav"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Delete: %v", err)
	}
	for _, key := range []string{"", ".", "..", "../x", "/etc/passwd", "a/../../x", "a//b"} {
		if err := f.Put(ctx, key, strings.NewReader("x")); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
}

// ledger is a CallStore with one call.
type ledger struct {
	call    control.Call
	asked   func() // hook that runs once, after the call was read
	missing bool
	erased  bool
	home    string        // the node of the call
	away    time.Duration // time since its last sign of life
}

func (l *ledger) Call(_ context.Context, org, _ string) (control.Call, error) {
	c := l.call
	if l.missing {
		return control.Call{}, control.Refuse(control.CodeCallNotFound, "no such call")
	}
	if l.erased && org != "" {
		return c, control.Refuse(control.CodeCallNotFound, "no such call")
	}
	if asked := l.asked; asked != nil {
		l.asked = nil
		asked()
	}
	return c, nil
}

func (l *ledger) SetRecording(_ context.Context, _ string, s control.RecordingStatus, key string) error {
	l.call.RecordingStatus, l.call.RecordingKey = s, key
	return nil
}

func (l *ledger) SetJoined(_ context.Context, _, key string) (bool, error) {
	if l.call.RecordingStatus == control.RecordingFinalizing {
		l.call.RecordingStatus, l.call.RecordingKey, l.call.Truncated = control.RecordingReady, key, true
	}
	return l.call.RecordingKey == key, nil
}

func (l *ledger) CallNode(context.Context, string) (string, time.Duration, error) {
	return l.home, l.away, nil
}

type plainLeg struct{}

func (plainLeg) Rate() int                   { return 8000 }
func (plainLeg) ReadFrame(media.Frame) error { return nil }
func (plainLeg) Play(media.Feed)             {}
func (plainLeg) Digits() <-chan rune         { return nil }
func (plainLeg) Cause() media.Cause          { return "" }
func (plainLeg) Hangup(media.Cause) error    { return nil }

const id = "call_00000000000000000000000001"

func newSpool(t *testing.T, status control.RecordingStatus) (*recording.Spool, *ledger) {
	t.Helper()
	l := &ledger{call: control.Call{ID: id, OrgID: "org", Status: control.Ended, RecordingStatus: status}}
	return &recording.Spool{Dir: t.TempDir(), Bucket: &recording.Folder{Dir: t.TempDir()}, Calls: l}, l
}

func (l *ledger) isReady(t *testing.T, s *recording.Spool) {
	t.Helper()
	f, err := s.Bucket.Open(t.Context(), l.call.RecordingKey)
	if err != nil || l.call.RecordingStatus != control.RecordingReady {
		t.Fatalf("%s: %v", l.call.RecordingStatus, err)
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil || string(head) != "RIFF" {
		t.Errorf("%q %v", head, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 0 {
		t.Errorf("the spool still holds %v", left)
	}
}

func TestRecordingIsUploaded(t *testing.T) {
	s, l := newSpool(t, control.RecordingFinalizing)
	_, rec, err := s.Record(id, plainLeg{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	e := control.Event{CallID: id, Kind: control.CallEnded, At: time.Now()}
	for range 2 {
		if err := s.HandleEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		l.isReady(t, s)
	}
}

// TestRecordingOfRestoredCall checks the recording of a call that the database lost. The local file stays while the
// call may be written again. When the call is written again, it gets the recording in the bucket.
func TestRecordingOfRestoredCall(t *testing.T) {
	s, l := newSpool(t, control.RecordingFinalizing)
	write(t, s)
	event := control.Event{CallID: id, Kind: control.CallEnded, Status: control.Ended, At: time.Now()}
	for range 2 {
		l.call.RecordingStatus, l.call.RecordingKey = control.RecordingFinalizing, ""
		if err := s.HandleEvent(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		l.isReady(t, s)
	}
	write(t, s)
	l.missing, s.WasSent = true, func(string) bool { return true }
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 1 {
		t.Errorf("the spool holds %v, want the file of the call", left)
	}
	s.WasSent = nil
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(s.Dir); len(left) != 0 {
		t.Errorf("the spool holds %v of a call that was deleted", left)
	}
}

// TestUnclosedRecordingIsUploaded checks that the next start uploads a recording that was never closed, although its
// status is already failed.
func TestUnclosedRecordingIsUploaded(t *testing.T) {
	s, l := newSpool(t, control.RecordingFailed)
	if _, _, err := s.Record(id, plainLeg{}); err != nil { // the recording is never closed
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "call_00000000000000000000000002.wav.part"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, "call_00000000000000000000000002.wav.part")); err != nil {
		t.Fatal(err)
	}
	l.isReady(t, s)
}

func TestLostRecordingDoesNotBlockEvents(t *testing.T) {
	s, l := newSpool(t, control.RecordingFinalizing)
	if err := s.HandleEvent(t.Context(), control.Event{CallID: id, Kind: control.CallEnded, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if l.call.RecordingStatus != control.RecordingFailed {
		t.Errorf("recording %s", l.call.RecordingStatus)
	}
	s, l = newSpool(t, control.RecordingDisabled)
	if err := s.HandleEvent(t.Context(), control.Event{CallID: id, Kind: control.CallEnded}); err != nil || l.call.RecordingStatus != control.RecordingDisabled {
		t.Errorf("not recorded: %v %s", err, l.call.RecordingStatus)
	}
}

// hookedBucket is a Bucket that calls a hook after the first Put.
type hookedBucket struct {
	recording.Bucket
	after func()
}

func (h *hookedBucket) Put(ctx context.Context, key string, r io.Reader) error {
	err := h.Bucket.Put(ctx, key, r)
	if after := h.after; after != nil {
		h.after = nil
		after()
	}
	return err
}

// TestSweepDuringUpload removes the recording by a sweep while HandleEvent runs, at both possible moments.
func TestSweepDuringUpload(t *testing.T) {
	e := control.Event{CallID: id, Kind: control.CallEnded, At: time.Now()}
	t.Run("after the upload", func(t *testing.T) {
		s, l := newSpool(t, control.RecordingFinalizing)
		write(t, s)
		s.Bucket = &hookedBucket{s.Bucket, func() {
			if err := s.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		}}
		if err := s.HandleEvent(t.Context(), e); err != nil {
			t.Error(err)
		}
		l.isReady(t, s)
	})
	t.Run("before the file is opened", func(t *testing.T) {
		s, l := newSpool(t, control.RecordingFinalizing)
		write(t, s)
		l.asked = func() {
			if err := s.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := s.HandleEvent(t.Context(), e); err != nil {
			t.Error(err)
		}
		l.isReady(t, s)
	})
}

func write(t *testing.T, s *recording.Spool) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, id+".wav"), []byte("RIFF"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRecordingIsNotLost checks a recording that is still being written when another node settles its call. This
// happens if the process was suspended. The recording must be kept.
func TestOpenRecordingIsNotLost(t *testing.T) {
	s, l := newSpool(t, control.RecordingFinalizing)
	_, rec, err := s.Record(id, plainLeg{})
	if err != nil {
		t.Fatal(err)
	}
	e := control.Event{CallID: id, Kind: control.CallEnded, At: time.Now().Add(-time.Hour)}
	if err := s.HandleEvent(t.Context(), e); err == nil || l.call.RecordingStatus != control.RecordingFinalizing {
		t.Fatalf("recording status %s during recording: %v", l.call.RecordingStatus, err)
	}
	if _, err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.HandleEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	l.isReady(t, s)
}

func TestContent(t *testing.T) {
	spool, _ := newSpool(t, control.RecordingFinalizing)
	if c := spool.Content(); c.Files != 0 || c.Size != 0 {
		t.Errorf("an empty spool has %d files of %d bytes", c.Files, c.Size)
	}
	if err := os.MkdirAll(spool.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(spool.Dir, "call_1.wav")
	if err := os.WriteFile(name, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if c := spool.Content(); c.Files != 1 || c.Size != 100 || c.Oldest.Round(time.Minute) != time.Hour {
		t.Errorf("got %+v", c)
	}
}
