package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// A Track is received audio: contiguous frames with their arrival times.
type Track struct {
	Rate int
	PCM  []int16
	At   []time.Time   // arrival of each frame; estimated if no packet arrived
	Real []bool        // whether a packet arrived for each frame
	Lag  time.Duration // delay of the audio after decoding
}

// add appends a frame. A frame without a packet (measured is false) gets the time one frame after
// its predecessor, but not a time after at.
func (t *Track) add(f media.Frame, at time.Time, measured bool) {
	if n := len(t.At); !measured && n > 0 && t.At[n-1].Add(media.FrameTime).Before(at) {
		at = t.At[n-1].Add(media.FrameTime)
	}
	t.PCM = append(t.PCM, f...)
	t.At, t.Real = append(t.At, at), append(t.Real, measured)
}

// ArrivedAt returns when the packet with sample i arrived.
func (t Track) ArrivedAt(i int) time.Time {
	return t.At[max(0, min(i/media.FrameLen(t.Rate), len(t.At)-1))]
}

// WireTime returns when sample i would play without a jitter buffer. ArrivedAt has one time per
// packet; WireTime has one per sample.
func (t Track) WireTime(i int) time.Time {
	n := media.FrameLen(t.Rate)
	at := max(0, min(i/n, len(t.At)-1))
	return t.At[at].Add(time.Duration(i-at*n) * time.Second / time.Duration(t.Rate))
}

// SampleAt returns the first sample whose WireTime is at or after at.
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

// PlayTimes returns when each frame plays from a jitter buffer of fixed depth (Playout). The
// first frame plays Playout after its arrival. Each other frame follows its predecessor, or plays
// on arrival if it comes too late. A silent frame is skipped if it would wait more than Playout
// and one frame.
func (t Track) PlayTimes() []time.Time {
	played := make([]time.Time, len(t.At))
	n := media.FrameLen(t.Rate)
	for i, came := range t.At {
		due := came.Add(Playout)
		if i > 0 {
			next := played[i-1].Add(media.FrameTime)
			switch {
			case came.After(next):
				next = came // the jitter buffer was empty
			case next.Sub(due) > media.FrameTime && silent(t.PCM[i*n:(i+1)*n]):
				next = played[i-1] // the silence was skipped
			}
			due = next
		}
		played[i] = due
	}
	return played
}

// EarTime returns when sample i plays. played is the result of t.PlayTimes.
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
