package asr

import (
	"math"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/vad"
)

const (
	maxSegment  = 28 * time.Second       // below the 30 s that Whisper processes at once
	cutWindow   = 8 * time.Second        // a full segment is cut somewhere in its last 8 s
	segmentEdge = 200 * time.Millisecond // audio kept before and after the speech
)

// A segment is a stretch of speech. from and to are its positions in the stream.
type segment struct {
	pcm      []int16
	from, to time.Duration
}

// A segmenter cuts the speech out of a stream. It buffers at most maxSegment of audio.
type segmenter struct {
	rate        int
	detector    vad.Detector
	pcm         []int16
	levels      []float64     // level of each frame of pcm in dBFS
	start       time.Duration // position of pcm in the stream
	at          time.Duration // duration of the stream so far
	first, last int           // first and last frame of pcm with speech
	voiced      bool          // pcm contains speech
}

// add appends a frame. If maxSegment is reached, it returns the segment up to a quiet point.
func (s *segmenter) add(f media.Frame) (segment, bool) {
	s.pcm, s.at = append(s.pcm, f...), s.at+media.FrameTime
	verdict, back := s.detector.Frame(f)
	s.levels = append(s.levels, s.detector.Level())
	n := len(s.levels) - 1
	if s.detector.Speaking() && s.detector.Voiced() {
		if s.last = n; !s.voiced {
			s.voiced, s.first = true, n // the speech began in an earlier segment
		}
		if verdict == vad.SpeechStart {
			s.first = min(s.first, max(0, n-back))
		}
	}
	edge := int(segmentEdge / media.FrameTime)
	switch {
	case !s.voiced && len(s.levels) > 4*edge: // the detector dates the start of speech back by less than one edge
		s.drop(len(s.levels) - 2*edge)
	case len(s.levels) >= int(maxSegment/media.FrameTime):
		return s.cut(s.quietest())
	}
	return segment{}, false
}

// take returns the speech since the last segment. It reports false if there is none.
func (s *segmenter) take() (segment, bool) { return s.cut(len(s.levels)) }

// cut removes the first n frames and returns the speech in them.
func (s *segmenter) cut(n int) (segment, bool) {
	voiced := s.voiced && s.first < n
	edge := int(segmentEdge / media.FrameTime)
	from, to := max(0, s.first-edge), min(n, s.last+1+edge)
	var out segment
	if voiced {
		size := media.FrameLen(s.rate)
		out = segment{
			pcm:  append([]int16(nil), s.pcm[from*size:to*size]...),
			from: s.start + time.Duration(from)*media.FrameTime, to: s.start + time.Duration(to)*media.FrameTime,
		}
	}
	s.drop(n)
	return out, voiced
}

// drop removes the first n frames.
func (s *segmenter) drop(n int) {
	size := media.FrameLen(s.rate)
	s.pcm = append(s.pcm[:0], s.pcm[n*size:]...)
	s.levels = append(s.levels[:0], s.levels[n:]...)
	s.start += time.Duration(n) * media.FrameTime
	s.voiced = s.voiced && s.last >= n
	s.first, s.last = max(0, s.first-n), max(0, s.last-n)
}

// quietest returns the frame at which to cut a full segment: the middle of the quietest 100 ms in
// its last 8 s (cutWindow).
func (s *segmenter) quietest() int {
	const width = 5
	best, level := len(s.levels), math.Inf(1)
	for n := len(s.levels) - int(cutWindow/media.FrameTime); n+width <= len(s.levels); n++ {
		sum := 0.0
		for _, x := range s.levels[n : n+width] {
			sum += x
		}
		if sum < level {
			best, level = n+width/2, sum
		}
	}
	return best
}
