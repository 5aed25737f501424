package recording_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/recording/s3"
	"github.com/parley-voice/parley/control/recording/s3/s3test"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/recorder"
)

// sharedBucket is a bucket that all nodes of a test use.
type sharedBucket struct {
	recording.Bucket
	mu   sync.Mutex
	puts int
	down bool
	hang bool // uploads wait until they are canceled
}

func (b *sharedBucket) set(down, hang bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down, b.hang = down, hang
}

func (b *sharedBucket) Put(ctx context.Context, key string, r io.Reader) error {
	b.mu.Lock()
	down, hang := b.down, b.hang
	b.puts++
	b.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if down {
		return errors.New("503")
	}
	return b.Bucket.Put(ctx, key, r)
}

// tries returns the number of uploads that were tried.
func (b *sharedBucket) tries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.puts
}

// keys returns the keys with a prefix.
func (b *sharedBucket) keys(t *testing.T, prefix string) (all []string) {
	t.Helper()
	for f, err := range b.List(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f.Key)
	}
	return all
}

// audio returns the audio of all segments of the call, or of the recording with this key.
func (b *sharedBucket) audio(t *testing.T, keys ...string) (pcm []byte) {
	t.Helper()
	for _, key := range keys {
		f, err := b.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		_, size, err := recorder.ParseHeader(text)
		if err != nil || size != len(text)-recorder.HeaderLen {
			t.Fatalf("%s has %d bytes, and its header says %d, %v", key, len(text), size, err)
		}
		pcm = append(pcm, text[recorder.HeaderLen:]...)
	}
	return pcm
}

const (
	segment     = 25 * time.Second
	bytesPerSec = 8000 * recorder.SampleLen
)

// node is a node with a live call.
type node struct {
	*recording.Spool
	bucket *sharedBucket
	calls  *ledger
	rec    control.Recording
	quit   func() // ends the node and waits for its tasks
}

// startNode starts a node with a live call whose audio is never the same twice. It must run in a synctest bubble.
func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{bucket: &sharedBucket{Bucket: &recording.Folder{Dir: t.TempDir()}}}
	n.calls = &ledger{call: control.Call{ID: id, OrgID: "org", Status: control.Ongoing, RecordingStatus: control.RecordingInProgress}, home: "lost"}
	n.Spool = &recording.Spool{Dir: t.TempDir(), Bucket: n.bucket, Calls: n.calls, Segment: segment, Takeover: time.Minute, Home: "lost"}
	leg := mediatest.NewLeg(8000)
	recorded, rec, err := n.Record(id, leg)
	if err != nil {
		t.Fatal(err)
	}
	n.rec = rec
	random := rand.New(rand.NewPCG(1, 2))
	recorded.Play(media.FeedFunc(func(f media.Frame, _ time.Time) {
		for i := range f {
			f[i] = int16(random.Int32())
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	tasks.Go(func() { n.Run(ctx) })
	tasks.Go(func() {
		f := make(media.Frame, media.FrameLen(8000))
		for err := error(nil); err == nil; {
			err = recorded.ReadFrame(f)
		}
	})
	n.quit = sync.OnceFunc(func() {
		cancel()
		if err := leg.Hangup(media.LocalHangup); err != nil {
			t.Error(err)
		}
		tasks.Wait()
	})
	t.Cleanup(n.quit)
	return n
}

// end ends the call properly.
func (n *node) end(t *testing.T) {
	t.Helper()
	n.quit()
	if _, err := n.rec.Close(); err != nil {
		t.Fatal(err)
	}
	n.calls.call.Status, n.calls.call.RecordingStatus = control.Ended, control.RecordingFinalizing
}

// close ends the recording of a node that is lost for the test.
func (n *node) close() { _, _ = n.rec.Close() }

// kill loses the node during the call. It returns the audio on the node's disk.
func (n *node) kill(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Dir, id+".wav.part"))
	if err != nil {
		t.Fatal(err)
	}
	n.quit()
	n.calls.call.Status, n.calls.call.Reason, n.calls.call.RecordingStatus = control.Ended, control.ReasonNodeLost, control.RecordingFinalizing
	return text[recorder.HeaderLen:]
}

// another returns the spool of another node.
func (n *node) another(t *testing.T) *recording.Spool {
	t.Helper()
	return &recording.Spool{Dir: t.TempDir(), Bucket: n.bucket, Calls: n.calls, Segment: segment, Takeover: time.Minute, Home: "other"}
}

func ended() control.Event {
	return control.Event{CallID: id, Kind: control.CallEnded, Status: control.Ended, At: time.Now()}
}

// TestSegmentsDuringCall checks at each second of a call that the bucket has all audio but the last 30 s, with at most
// one upload every 25 s, and that the segments are deleted when the recording is stored.
func TestSegmentsDuringCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		defer n.close()
		<-time.After(100 * time.Millisecond) // no upload is running at these times
		for s := range 95 {
			keys := n.bucket.keys(t, "")
			if got := len(n.bucket.audio(t, keys...)) / bytesPerSec; got < s-30 || len(keys) > s/25 || n.bucket.tries() != len(keys) {
				t.Fatalf("after %d s the bucket has %d s in %v, after %d uploads", s, got, keys, n.bucket.tries())
			}
			<-time.After(time.Second)
		}
		n.end(t)
		if err := n.HandleEvent(t.Context(), ended()); err != nil {
			t.Fatal(err)
		}
		n.calls.isReady(t, n.Spool)
		if keys := n.bucket.keys(t, ""); len(keys) != 1 || keys[0] != "recordings/"+id+".wav" {
			t.Errorf("the bucket has %v", keys)
		}
	})
}

// TestLostNode loses a node during a call. Another node joins the segments. When the lost node returns, its complete
// recording replaces the joined one.
func TestLostNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		defer n.close()
		<-time.After(70 * time.Second)
		pcm, other := n.kill(t), n.another(t)
		if err := (recording.Takeover{Spool: other}).HandleEvent(t.Context(), ended()); err != nil {
			t.Fatal(err)
		}
		c := n.calls.call
		if c.RecordingStatus != control.RecordingReady || !c.Truncated {
			t.Fatalf("recording %s, truncated %v", c.RecordingStatus, c.Truncated)
		}
		if keys := n.bucket.keys(t, ""); len(keys) != 1 || keys[0] != c.RecordingKey {
			t.Errorf("the bucket has %v, want %s", keys, c.RecordingKey)
		}
		if joined := n.bucket.audio(t, c.RecordingKey); len(joined) < len(pcm)-30*bytesPerSec || !bytes.HasPrefix(pcm, joined) {
			t.Errorf("joined %d bytes of %d", len(joined), len(pcm))
		}
		back := n.another(t)
		back.Dir = n.Dir
		if err := back.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.calls.isReady(t, back)
		if keys := n.bucket.keys(t, ""); len(keys) != 1 || !bytes.Equal(n.bucket.audio(t, keys...), pcm) {
			t.Errorf("after the return of the node the bucket has %v", keys)
		}
	})
}

// TestReturnWithShorterFile checks that a file that a power failure truncated does not replace a longer recording, and
// that the file of a call that was erased meanwhile is removed.
func TestReturnWithShorterFile(t *testing.T) {
	for _, erased := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := startNode(t)
			defer n.close()
			<-time.After(30 * time.Second)
			n.kill(t)
			if err := (recording.Takeover{Spool: n.another(t)}).HandleEvent(t.Context(), ended()); err != nil {
				t.Fatal(err)
			}
			want := n.calls.call.RecordingKey
			if !erased {
				if err := os.Truncate(filepath.Join(n.Dir, id+".wav.part"), 20*bytesPerSec); err != nil {
					t.Fatal(err)
				}
			}
			n.calls.erased = erased
			back := n.another(t)
			back.Dir = n.Dir
			if err := back.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left, _ := os.ReadDir(back.Dir); n.calls.call.RecordingKey != want || len(left) != 0 {
				t.Errorf("erased %v: the recording is %s, want %s; the spool has %v", erased, n.calls.call.RecordingKey, want, left)
			}
		})
	}
}

// TestBucketDownDuringCall checks that segments of an outage are uploaded afterwards, and that the complete recording
// is stored if the node lives.
func TestBucketDownDuringCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		defer n.close()
		n.bucket.set(true, false)
		<-time.After(80 * time.Second)
		if tries := n.bucket.tries(); tries > 12 {
			t.Errorf("%d uploads were tried in 55 s", tries)
		}
		n.bucket.set(false, false)
		<-time.After(10 * time.Second)
		if keys := n.bucket.keys(t, ""); len(keys) != 3 {
			t.Errorf("after the outage the bucket has %v", keys)
		}
		n.bucket.set(true, false)
		n.end(t)
		pcm := n.spooled(t)
		e := ended()
		if err := n.HandleEvent(t.Context(), e); err == nil {
			t.Error("a bucket that is down stores")
		}
		e.At = e.At.Add(-time.Hour)
		if err := n.HandleEvent(t.Context(), e); err != nil || n.calls.call.RecordingStatus != control.RecordingFinalizing {
			t.Errorf("call_ended must not wait for the bucket: %v, %s", err, n.calls.call.RecordingStatus)
		}
		if err := (recording.Settled{Spool: n.Spool}).HandleEvent(t.Context(), e); err == nil {
			t.Error("call_analyzed does not wait for the bucket")
		}
		n.bucket.set(false, false)
		if err := os.Chtimes(filepath.Join(n.Dir, id+".wav"), time.Time{}, time.Now()); err != nil { // the file system has no virtual time
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		n.Run(ctx)
		n.calls.isReady(t, n.Spool)
		if err := (recording.Settled{Spool: n.Spool}).HandleEvent(t.Context(), e); err != nil {
			t.Error(err)
		}
		if keys := n.bucket.keys(t, ""); len(keys) != 1 || !bytes.Equal(n.bucket.audio(t, keys...), pcm) {
			t.Errorf("the bucket has %v", keys)
		}
	})
}

// spooled returns the audio of a call that has ended.
func (n *node) spooled(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Dir, id+".wav"))
	if err != nil {
		t.Fatal(err)
	}
	return text[recorder.HeaderLen:]
}

// TestEndDuringUpload ends a call while a segment is uploaded. The end must not wait for the upload.
func TestEndDuringUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		n.bucket.set(false, true)
		<-time.After(segment + 5*time.Second)
		began := time.Now()
		if _, err := n.rec.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end of the call took %v", took)
		}
		n.bucket.set(false, false)
		<-time.After(time.Minute)
		if keys := n.bucket.keys(t, ""); len(keys) != 0 {
			t.Errorf("uploaded after the end of the call: %v", keys)
		}
	})
}

// TestSegmentsSaveLostFile checks that a recording whose file is lost is joined from its segments.
func TestSegmentsSaveLostFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t)
		<-time.After(60 * time.Second)
		if err := os.RemoveAll(n.Dir); err != nil {
			t.Fatal(err)
		}
		n.quit()
		if _, err := n.rec.Close(); !errors.Is(err, control.ErrTruncated) {
			t.Errorf("a recording whose segments are stored: %v", err)
		}
		n.calls.call.Status, n.calls.call.RecordingStatus = control.Ended, control.RecordingFinalizing
		if err := n.HandleEvent(t.Context(), ended()); err != nil {
			t.Fatal(err)
		}
		n.calls.isReady(t, n.Spool)
		if got := len(n.bucket.audio(t, n.calls.call.RecordingKey)); got != 50*bytesPerSec {
			t.Errorf("joined %d bytes", got)
		}
	})
}

// TestTakeoverWithoutSegments checks what other nodes do with a recording that is only on the lost node's disk.
func TestTakeoverWithoutSegments(t *testing.T) {
	s, l := newSpool(t, control.RecordingFinalizing)
	l.home, s.Home = "lost", "other"
	if err := (recording.Takeover{Spool: s}).HandleEvent(t.Context(), ended()); !errors.Is(err, control.ErrNeedsNode) {
		t.Errorf("the node may come back: %v", err)
	}
	settled := recording.Settled{Spool: s}
	for _, away := range []time.Duration{time.Second, 9 * time.Minute} {
		l.away = away
		if err := settled.HandleEvent(t.Context(), ended()); err == nil || l.call.RecordingStatus != control.RecordingFinalizing {
			t.Errorf("away for %v: %v, %s", away, err, l.call.RecordingStatus)
		}
	}
	l.away = 11 * time.Minute
	if err := settled.HandleEvent(t.Context(), ended()); err != nil || l.call.RecordingStatus != control.RecordingFailed {
		t.Errorf("the node does not come back: %v, %s", err, l.call.RecordingStatus)
	}
	for _, status := range []control.RecordingStatus{control.RecordingDisabled, control.RecordingReady, control.RecordingFailed} {
		l.call.RecordingStatus = status
		if err := (recording.Takeover{Spool: s}).HandleEvent(t.Context(), ended()); err != nil {
			t.Errorf("%s needs no node: %v", status, err)
		}
		if err := settled.HandleEvent(t.Context(), ended()); err != nil {
			t.Errorf("%s is settled: %v", status, err)
		}
	}
}

// TestJoinOnlyOnce lets two nodes join a recording while a third segment arrives. One recording is published, and
// nothing else is left.
func TestJoinOnlyOnce(t *testing.T) {
	s, l := newSpool(t, control.RecordingFinalizing)
	b := &sharedBucket{Bucket: s.Bucket}
	putSegments(t, b, 100, 100)
	slow := &recording.Spool{Dir: t.TempDir(), Calls: l, Bucket: &hookedBucket{b, func() { // the slow node has stored its recording
		putSegments(t, b, 100, 100, 100)
		fast := recording.Takeover{Spool: &recording.Spool{Dir: t.TempDir(), Calls: l, Bucket: b}}
		if err := fast.HandleEvent(t.Context(), ended()); err != nil {
			t.Error(err)
		}
	}}}
	if err := (recording.Takeover{Spool: slow}).HandleEvent(t.Context(), ended()); err != nil {
		t.Error(err)
	}
	if keys := b.keys(t, ""); len(keys) != 1 || keys[0] != l.call.RecordingKey || !strings.Contains(keys[0], "joined-000003") {
		t.Errorf("published %s, the bucket has %v", l.call.RecordingKey, keys)
	}
}

// putSegments stores segments with numbers of samples. Sample n of the call has the value n.
func putSegments(t *testing.T, b recording.Bucket, samples ...int) (pcm []byte) {
	t.Helper()
	for n, count := range samples {
		part := make([]byte, 0, count*recorder.SampleLen)
		for range count {
			at := (len(pcm) + len(part)) / recorder.SampleLen
			part = append(part, byte(at), byte(at>>8), byte(at>>16), byte(at>>24))
		}
		pcm = append(pcm, part...)
		text := append(recorder.Header(8000, uint32(len(part))), part...)
		if err := b.Put(t.Context(), segmentKey(n), bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return pcm
}

func segmentKey(n int) string {
	return "segments/" + id + "/00000" + string(rune('0'+n)) + ".wav"
}

// TestJoinAnySegments joins random segments, in a folder and over S3, and compares the result with the whole audio.
func TestJoinAnySegments(t *testing.T) {
	far := s3test.New(t)
	remote, err := s3.Open(far.BucketURL("p"), s3.Account{ID: s3test.ID, Secret: s3test.Secret})
	if err != nil {
		t.Fatal(err)
	}
	for name, bucket := range map[string]recording.Bucket{"folder": &recording.Folder{Dir: t.TempDir()}, "s3": remote} {
		for range 30 {
			var samples []int
			for range 1 + rand.IntN(9) {
				samples = append(samples, rand.IntN(3000))
			}
			s, l := newSpool(t, control.RecordingFinalizing)
			s.Bucket = bucket
			b := &sharedBucket{Bucket: bucket}
			want := putSegments(t, bucket, samples...)
			if err := (recording.Takeover{Spool: s}).HandleEvent(t.Context(), ended()); err != nil {
				t.Fatalf("%s: %v: %v", name, samples, err)
			}
			keys := b.keys(t, "")
			if len(keys) != 1 || keys[0] != l.call.RecordingKey || !bytes.Equal(b.audio(t, keys...), want) {
				t.Fatalf("%s: %v are joined as %v", name, samples, keys)
			}
			if err := bucket.Delete(t.Context(), keys[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestJoinStopsAtGap checks that the segments after a missing one are not joined, and that segments with different
// sample rates are not joined at all.
func TestJoinStopsAtGap(t *testing.T) {
	s, l := newSpool(t, control.RecordingFinalizing)
	b := &sharedBucket{Bucket: s.Bucket}
	putSegments(t, b, 100, 100, 100)
	if err := b.Delete(t.Context(), segmentKey(1)); err != nil {
		t.Fatal(err)
	}
	if err := (recording.Takeover{Spool: s}).HandleEvent(t.Context(), ended()); err != nil {
		t.Fatal(err)
	}
	if got := len(b.audio(t, l.call.RecordingKey)); got != 100*recorder.SampleLen {
		t.Errorf("joined %d bytes", got)
	}
	s, l = newSpool(t, control.RecordingFinalizing)
	putSegments(t, s.Bucket, 100, 100)
	if err := s.Bucket.Put(t.Context(), segmentKey(1), bytes.NewReader(recorder.Header(16000, 0))); err != nil {
		t.Fatal(err)
	}
	if err := (recording.Takeover{Spool: s}).HandleEvent(t.Context(), ended()); err == nil || !strings.Contains(err.Error(), "sample rate") {
		t.Errorf("different sample rates: %v", err)
	}
	if l.call.RecordingStatus != control.RecordingFinalizing {
		t.Errorf("the recording is %s", l.call.RecordingStatus)
	}
}

// TestSweepSegments checks which segments are deleted.
func TestSweepSegments(t *testing.T) {
	joined := "segments/" + id + "/joined-000002.wav"
	old := control.NewID("call_", time.Now().Add(-72*time.Hour))
	for name, row := range map[string]struct {
		change func(*ledger)
		left   int
	}{
		"live":       {func(l *ledger) { l.call.Status, l.call.RecordingStatus = control.Ongoing, control.RecordingInProgress }, 3},
		"join pends": {func(*ledger) {}, 3},
		"erased":     {func(l *ledger) { l.erased = true }, 0},
		"joined":     {func(l *ledger) { l.call.RecordingStatus, l.call.RecordingKey = control.RecordingReady, joined }, 1},
		"stored": {func(l *ledger) {
			l.call.RecordingStatus, l.call.RecordingKey = control.RecordingReady, "recordings/x.wav"
		}, 0},
		"purged":      {func(l *ledger) { l.call.RecordingStatus = control.RecordingNone }, 0},
		"unknown":     {func(l *ledger) { l.missing, l.call.ID = true, control.NewID("call_", time.Now()) }, 3},
		"old unknown": {func(l *ledger) { l.missing, l.call.ID = true, old }, 0},
		"not a call":  {func(l *ledger) { l.missing, l.call.ID = true, "README" }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := newSpool(t, control.RecordingFinalizing)
			b := &sharedBucket{Bucket: s.Bucket}
			row.change(l)
			for _, key := range []string{segmentKey(0), segmentKey(1), joined} {
				if err := b.Put(t.Context(), strings.Replace(key, id, l.call.ID, 1), strings.NewReader("RIFF")); err != nil {
					t.Fatal(err)
				}
			}
			if err := recording.SweepSegments(t.Context(), b, l); err != nil {
				t.Fatal(err)
			}
			if keys := b.keys(t, recording.SegmentPrefix); len(keys) != row.left {
				t.Errorf("%v are left, want %d", keys, row.left)
			}
		})
	}
}

// TestListMissing checks that a folder that does not exist is empty.
func TestListMissing(t *testing.T) {
	f := &recording.Folder{Dir: filepath.Join(t.TempDir(), "missing")}
	for file, err := range f.List(t.Context(), recording.SegmentPrefix) {
		t.Errorf("%v, %v", file, err)
	}
	if _, err := f.Open(t.Context(), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
