package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// A Track is received audio: contiguous frames with the arrival time of their
// packets.
type Track struct {
	Rate int
	PCM  []int16
	At   []time.Time   // arrival of each frame; the expected time if no packet arrived
	Real []bool        // whether a packet arrived for each frame
	Lag  time.Duration // delay of the audio after decoding
}

// add appends a frame. A concealed frame has no arrival time and is dated one
// frame after its predecessor.
func (t *Track) add(f media.Frame, at time.Time, measured bool) {
	if n := len(t.At); !measured && n > 0 && t.At[n-1].Add(media.FrameTime).Before(at) {
		at = t.At[n-1].Add(media.FrameTime)
	}
	t.PCM = append(t.PCM, f...)
	t.At, t.Real = append(t.At, at), append(t.Real, measured)
}

// ArrivedAt returns the arrival of the packet with sample i.
func (t Track) ArrivedAt(i int) time.Time {
	return t.At[max(0, min(i/media.FrameLen(t.Rate), len(t.At)-1))]
}

// WireTime returns when sample i would play without a jitter buffer. Unlike ArrivedAt,
// it separates positions within a packet.
func (t Track) WireTime(i int) time.Time {
	n := media.FrameLen(t.Rate)
	at := max(0, min(i/n, len(t.At)-1))
	return t.At[at].Add(time.Duration(i-at*n) * time.Second / time.Duration(t.Rate))
}

// SampleAt returns the first sample that arrived at or after a time.
func (t Track) SampleAt(at time.Time) int {
	n := media.FrameLen(t.Rate)
	low, high := 0, len(t.At)
	for low < high {
		if mid := (low + high) / 2; t.At[mid].Before(at) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0
	}
	inside := int(at.Sub(t.At[low-1]) * time.Duration(t.Rate) / time.Second)
	return (low-1)*n + min(n, inside)
}

// PlayTimes returns when each frame plays from a jitter buffer of fixed depth: the
// first one depth after its arrival, each other after its predecessor, unless it
// arrived too late. Silence that would wait longer than the depth and a frame is
// skipped.
func (t Track) PlayTimes() []time.Time {
	played := make([]time.Time, len(t.At))
	n := media.FrameLen(t.Rate)
	for i, came := range t.At {
		due := came.Add(Playout)
		if i > 0 {
			next := played[i-1].Add(media.FrameTime)
			switch {
			case came.After(next):
				next = came // the buffer was empty
			case next.Sub(due) > media.FrameTime && silent(t.PCM[i*n:(i+1)*n]):
				next = played[i-1] // the silence was skipped
			}
			due = next
		}
		played[i] = due
	}
	return played
}

// EarTime returns when sample i plays. played is the result of PlayTimes.
func (t Track) EarTime(played []time.Time, i int) time.Time {
	n := media.FrameLen(t.Rate)
	at := max(0, min(i/n, len(played)-1))
	return played[at].Add(time.Duration(i-at*n)*time.Second/time.Duration(t.Rate) - t.Lag)
}

// silent reports whether f stays below -60 dBFS.
func silent(f []int16) bool {
	for _, x := range f {
		if x > 33 || x < -33 {
			return false
		}
	}
	return true
}
