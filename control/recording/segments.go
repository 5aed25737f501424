package recording

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media/recorder"
)

// Segments are parts of the recordings of live calls. They are in the bucket under SegmentPrefix, so that another node
// can join them to a recording if the node of the call is lost. Each segment is a WAV file. Segment n of a call begins
// where segment n-1 ends, and is uploaded after it. The folder of a call also has the joined recording.

// SegmentPrefix is the prefix of the keys of segments and joined recordings.
const SegmentPrefix = "segments/"

// MaxSegment is the maximum duration of a segment.
const MaxSegment = 30 * time.Second

const (
	uploadsAtOnce  = 8                      // maximum number of concurrent uploads of segments; each has its segment in memory
	segmentTick    = 500 * time.Millisecond // interval of checks for complete segments
	segmentTimeout = 20 * time.Second       // maximum duration of one upload
	bucketPause    = 5 * time.Second        // pause of all uploads of segments after a failed one
	sweepInterval  = time.Minute            // interval of uploads of recordings that HandleEvent gave up
)

// IsShared reports whether all nodes reach the bucket of a URL. Segments are uploaded only to such buckets.
func IsShared(url string) bool { return strings.HasPrefix(url, "s3://") }

func segmentFolder(callID string) string { return SegmentPrefix + callID + "/" }

func segmentKey(callID string, n int) string {
	return fmt.Sprintf("%s%06d.wav", segmentFolder(callID), n)
}

// segmentLen returns the number of bytes of audio in a segment.
func segmentLen(d time.Duration, rate int) int64 {
	return int64(d) * int64(rate) / int64(time.Second) * recorder.SampleLen
}

// liveRecording is a recording of a live call.
type liveRecording struct {
	id, file string
	rate     int
	began    time.Time

	uploading sync.Mutex // held during an upload
	stored    int        // number of segments in the bucket; guarded by uploading

	mu     sync.Mutex
	closed bool
	cancel context.CancelFunc // cancels the upload that is running; nil if none is
}

// close stops the uploads of segments, and waits until none is running. No segment is uploaded afterwards.
func (r *liveRecording) close() {
	r.mu.Lock()
	r.closed = true
	if r.cancel != nil {
		r.cancel()
	}
	r.mu.Unlock()
	r.uploading.Lock()
	defer r.uploading.Unlock()
}

// begin returns a context for an upload, which close cancels. ok is false after close.
func (r *liveRecording) begin(ctx context.Context) (_ context.Context, end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, segmentTimeout)
	r.cancel = cancel
	return ctx, cancel, true
}

// segmenter has the state of the uploads of segments.
type segmenter struct {
	mu      sync.Mutex
	live    map[string]*liveRecording // recordings of live calls by the id of the call
	resume  time.Time                 // end of the pause after a failed upload
	failing bool                      // the last upload failed
}

func (g *segmenter) add(r *liveRecording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live == nil {
		g.live = map[string]*liveRecording{}
	}
	g.live[r.id] = r
}

func (g *segmenter) remove(r *liveRecording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, r.id)
}

// due returns the recordings that may have a complete segment, unless uploads pause.
func (g *segmenter) due(now time.Time, segment time.Duration) (due []*liveRecording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Before(g.resume) {
		return nil
	}
	for _, r := range g.live {
		if r.uploading.TryLock() {
			if now.Sub(r.began) >= time.Duration(r.stored+1)*segment {
				due = append(due, r)
			}
			r.uploading.Unlock()
		}
	}
	return due
}

// record records the result of an upload. It reports whether the state of the bucket changed.
func (g *segmenter) record(ok bool, now time.Time) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed = g.failing == ok
	if g.failing = !ok; g.failing {
		g.resume = now.Add(bucketPause)
	}
	return changed
}

// Run uploads segments of live calls, and the recordings of ended calls that HandleEvent gave up, until ctx ends.
func (s *Spool) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	if s.Segment > 0 {
		buffers := make(chan []byte, uploadsAtOnce)
		for range uploadsAtOnce {
			buffers <- nil
		}
		tasks.Go(func() {
			every(ctx, segmentTick, func() { s.uploadSegments(ctx, buffers, &tasks) })
		})
	}
	every(ctx, sweepInterval, func() {
		if err := s.sweep(ctx, sweepInterval); err != nil && ctx.Err() == nil {
			s.log().WarnContext(ctx, "failed to upload recordings", "err", err)
		}
	})
}

func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// uploadSegments starts an upload for each recording with a complete segment, as long as there are buffers.
func (s *Spool) uploadSegments(ctx context.Context, buffers chan []byte, tasks *sync.WaitGroup) {
	for _, r := range s.segments.due(time.Now(), s.Segment) {
		select {
		case buffer := <-buffers:
			tasks.Go(func() {
				buffer = s.uploadSegment(ctx, r, buffer)
				buffers <- buffer
			})
		default:
			return // the next tick continues
		}
	}
}

// uploadSegment uploads the next segment of a recording if it is complete. It returns the buffer for reuse. After an
// error the segment is uploaded again later; the recording is on the node's disk meanwhile.
func (s *Spool) uploadSegment(ctx context.Context, r *liveRecording, buffer []byte) []byte {
	if !r.uploading.TryLock() {
		return buffer
	}
	defer r.uploading.Unlock()
	upload, end, ok := r.begin(ctx)
	if !ok {
		return buffer
	}
	defer end()
	size := segmentLen(s.Segment, r.rate)
	buffer = append(buffer[:0], recorder.Header(r.rate, uint32(size))...) //nolint:gosec // at most MaxSegment
	buffer, complete, err := readPart(r.file, buffer, int64(r.stored)*size, size)
	if err == nil && !complete {
		return buffer
	}
	if err == nil {
		err = s.Bucket.Put(upload, segmentKey(r.id, r.stored), bytes.NewReader(buffer))
	}
	if err != nil && upload.Err() != nil && ctx.Err() != nil {
		return buffer
	}
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return buffer
	}
	if err == nil {
		r.stored++
	}
	switch changed := s.segments.record(err == nil, time.Now()); {
	case changed && err != nil:
		s.log().WarnContext(ctx, "failed to upload a segment of a recording; retrying until the bucket is available", "call", r.id, "err", err)
	case changed:
		s.log().InfoContext(ctx, "segments of recordings are uploaded again")
	}
	return buffer
}

// readPart appends size bytes of the audio in a file to b, starting at byte at of the audio. It reports whether the
// file has that many bytes.
func readPart(name string, b []byte, at, size int64) (_ []byte, complete bool, err error) {
	f, err := os.Open(name) //nolint:gosec // in the spool
	if err != nil {
		return b, false, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || info.Size() < recorder.HeaderLen+at+size {
		return b, false, err
	}
	n := len(b)
	if need := n + int(size); cap(b) < need {
		b = append(make([]byte, 0, need), b...)
	}
	b = b[:n+int(size)]
	if _, err = f.ReadAt(b[n:], recorder.HeaderLen+at); err != nil {
		return b, false, fmt.Errorf("read %s: %w", name, err)
	}
	return b, true, nil
}

// deleteSegments deletes the segments of a call whose recording is stored. size is the length of the recording's file.
// A segment that cannot be deleted is left to SweepSegments.
func (s *Spool) deleteSegments(ctx context.Context, c control.Call, rate int, size int64) {
	var err error
	switch {
	case strings.HasPrefix(c.RecordingKey, SegmentPrefix): // joined by another node
		err = deleteFolder(ctx, s.Bucket, c.ID, "")
	case s.Segment > 0 && rate > 0:
		for n := range int((size - recorder.HeaderLen) / segmentLen(s.Segment, rate)) {
			if err = s.Bucket.Delete(ctx, segmentKey(c.ID, n)); err != nil {
				break
			}
		}
	}
	if err != nil {
		s.logLeftSegments(ctx, c.ID, err)
	}
}

// logLeftSegments logs that segments could not be deleted. SweepSegments deletes them.
func (s *Spool) logLeftSegments(ctx context.Context, callID string, err error) {
	s.log().WarnContext(ctx, "failed to delete segments of a recording; retrying within an hour", "call", callID, "err", err)
}

// deleteFolder deletes the files of a call under SegmentPrefix, except the file with the key keep.
func deleteFolder(ctx context.Context, b Bucket, callID, keep string) error {
	for f, err := range b.List(ctx, segmentFolder(callID)) {
		if err == nil && f.Key != keep {
			err = b.Delete(ctx, f.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
