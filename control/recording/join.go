package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/media/recorder"
)

// joinsAtOnce is the maximum number of recordings that a node joins at the same time. Each upload takes up to 16 MB of
// memory.
const joinsAtOnce = 4

// join stores the recording of a call whose file is missing from the segments in the bucket. The error is
// fs.ErrNotExist if there are none. The content of a joined recording depends only on its key, and the database keeps
// the first key, so two nodes never publish different recordings.
func (s *Spool) join(ctx context.Context, c control.Call) error {
	end, err := s.joinSlots().begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	segments, size, err := listSegments(ctx, s.Bucket, c.ID)
	if err != nil {
		return err
	}
	if len(segments) == 0 {
		return fmt.Errorf("segments of %s: %w", c.ID, fs.ErrNotExist)
	}
	key := fmt.Sprintf("%sjoined-%06d.wav", segmentFolder(c.ID), len(segments))
	r := &joinReader{ctx: ctx, bucket: s.Bucket, segments: segments, size: size}
	err = s.Bucket.Put(ctx, key, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	first, err := s.Calls.SetJoined(ctx, c.ID, key)
	if err != nil {
		return err
	}
	if !first { // another node has stored the recording
		return deleteUnlessPublished(ctx, s.Bucket, s.Calls, c.ID, key)
	}
	s.observe(Joined)
	s.log().WarnContext(ctx, "recording joined from segments, because its node is lost", "call", c.ID, "segments", len(segments))
	if err = deleteFolder(ctx, s.Bucket, c.ID, key); err != nil {
		s.logLeftSegments(ctx, c.ID, err)
	}
	return nil
}

func deleteUnlessPublished(ctx context.Context, b Bucket, calls CallStore, callID, key string) error {
	c, err := calls.Call(ctx, "", callID)
	if err != nil || c.RecordingKey == key {
		return err
	}
	return b.Delete(ctx, key)
}

func (s *Spool) joinSlots() slots {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joins == nil {
		s.joins = make(slots, joinsAtOnce)
	}
	return s.joins
}

// listSegments returns the segments of a call, up to the first one that is missing, and the number of bytes of their
// audio.
func listSegments(ctx context.Context, b Bucket, callID string) (all []File, size int64, err error) {
	for f, err := range b.List(ctx, segmentFolder(callID)) {
		if err != nil {
			return nil, 0, err
		}
		if f.Key != segmentKey(callID, len(all)) || f.Size < recorder.HeaderLen {
			break // a joined recording, or the segments after a missing one
		}
		all = append(all, f)
		size += f.Size - recorder.HeaderLen
	}
	return all, size, nil
}

// joinReader reads segments as one recording. It has one segment open at a time.
type joinReader struct {
	ctx      context.Context //nolint:containedctx // io.Reader has no context
	bucket   Bucket
	segments []File // the segments that are not open yet
	size     int64  // number of bytes of audio in all segments

	rate    int       // sample rate; 0 before the first segment
	head    []byte    // unread bytes of the header
	current io.Reader // audio of the current segment; nil before the first
	closer  io.Closer
	left    int64 // unread bytes of audio in the current segment
}

// Size returns the length of the recording in bytes.
func (j *joinReader) Size() int64 { return recorder.HeaderLen + j.size }

// Read implements io.Reader.
func (j *joinReader) Read(b []byte) (int, error) {
	for {
		switch {
		case len(j.head) > 0:
			n := copy(b, j.head)
			j.head = j.head[n:]
			return n, nil
		case j.left > 0:
			n, err := j.current.Read(b[:min(int64(len(b)), j.left)])
			if j.left -= int64(n); errors.Is(err, io.EOF) {
				if err = nil; j.left > 0 {
					err = io.ErrUnexpectedEOF
				}
			}
			if n > 0 || err != nil {
				return n, err
			}
		case len(j.segments) == 0:
			return 0, io.EOF
		default:
			if err := j.next(); err != nil {
				return 0, err
			}
		}
	}
}

// next opens the next segment.
func (j *joinReader) next() error {
	key, size := j.segments[0].Key, j.segments[0].Size
	if err := j.Close(); err != nil {
		return err
	}
	f, err := j.bucket.Open(j.ctx, key)
	if err != nil {
		return err
	}
	j.closer = f
	head := make([]byte, recorder.HeaderLen)
	if _, err = io.ReadFull(f, head); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	rate, _, err := recorder.ParseHeader(head)
	if err == nil && j.rate != 0 && rate != j.rate {
		err = fmt.Errorf("the sample rate is %d Hz, not %d Hz as before", rate, j.rate)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if j.rate == 0 {
		if j.size > recorder.MaxAudio {
			return fmt.Errorf("%s: %d bytes are more than a WAV file can hold", key, j.size)
		}
		j.rate, j.head = rate, recorder.Header(rate, uint32(j.size)) //nolint:gosec // checked above
	}
	j.segments, j.current, j.left = j.segments[1:], f, size-recorder.HeaderLen
	return nil
}

// Close closes the segment that is open.
func (j *joinReader) Close() error {
	c := j.closer
	j.closer = nil
	if c == nil {
		return nil
	}
	return c.Close()
}

// slots limits how many tasks run at the same time to its capacity.
type slots chan struct{}

// begin waits for a slot. The caller must call end to give it back. If s is nil, begin does not wait.
func (s slots) begin(ctx context.Context) (end func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SweepSegments deletes segments and joined recordings that no call needs: the recording of the call is stored, or the
// call was erased or deleted. A crash, or a bucket that was unavailable, may have left them.
func SweepSegments(ctx context.Context, b Bucket, calls CallStore) error {
	var last, keep string // the call of the previous file, and the only key of that call to keep; "" keeps none
	all := false          // keep all files of that call
	for f, err := range b.List(ctx, SegmentPrefix) {
		if err != nil {
			return fmt.Errorf("sweep segments: %w", err)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(f.Key, SegmentPrefix), "/")
		if id != last {
			if keep, all, err = neededSegments(ctx, calls, id); err != nil {
				return fmt.Errorf("sweep segments: %w", err)
			}
			last = id
		}
		if all || f.Key == keep {
			continue
		}
		if err = b.Delete(ctx, f.Key); err != nil {
			return fmt.Errorf("sweep segments: %w", err)
		}
	}
	return nil
}

// forgottenFor is the age up to which the segments of an unknown call are kept. A database that reverted to an earlier
// state may get the call again. Journals are as old as this at most.
const forgottenFor = 48 * time.Hour

// neededSegments returns the key of the only file of a call under SegmentPrefix that is needed, or all if all are.
func neededSegments(ctx context.Context, calls CallStore, id string) (key string, all bool, err error) {
	c, err := calls.Call(ctx, "", id)
	if control.CodeOf(err) == control.CodeCallNotFound {
		made, ok := control.IDTime(id)
		return "", !ok || time.Since(made) < forgottenFor, nil
	}
	if err != nil {
		return "", false, err
	}
	if c.Status.Over() && c.RecordingStatus != control.RecordingFinalizing {
		return c.RecordingKey, false, nil
	}
	_, err = calls.Call(ctx, c.OrgID, id) // does not find erased calls
	if control.CodeOf(err) == control.CodeCallNotFound {
		return "", false, nil
	}
	return "", true, err
}
