package callee

import (
	"time"

	"github.com/parley-voice/parley/media"
)

// A Track is received sound: frames without holes, with the time at which the
// packet of each came.
type Track struct {
	Rate int
	PCM  []int16
	At   []time.Time   // of each frame; where nothing came, when it should have
	Real []bool        // of each frame: a packet came for it
	Lag  time.Duration // by how much the sound is behind what was decoded
}

// add takes a frame. Of one that was made up for a lost packet it is not known
// when it came: it is put a frame after the one before it.
func (t *Track) add(f media.Frame, at time.Time, measured bool) {
	if n := len(t.At); !measured && n > 0 && t.At[n-1].Add(media.FrameTime).Before(at) {
		at = t.At[n-1].Add(media.FrameTime)
	}
	t.PCM = append(t.PCM, f...)
	t.At, t.Real = append(t.At, at), append(t.Real, measured)
}

// Came is when the packet that holds sample i came.
func (t Track) Came(i int) time.Time {
	return t.At[max(0, min(i/media.FrameLen(t.Rate), len(t.At)-1))]
}

// Wire is when sample i would be heard by a listener who plays each packet as it
// comes. It puts places inside a packet apart, as Came does not.
func (t Track) Wire(i int) time.Time {
	n := media.FrameLen(t.Rate)
	at := max(0, min(i/n, len(t.At)-1))
	return t.At[at].Add(time.Duration(i-at*n) * time.Second / time.Duration(t.Rate))
}

// Before is the first sample that came at or after a time.
func (t Track) Before(at time.Time) int {
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

// Played is when each frame is heard through a jitter buffer of fixed depth: the
// first a depth after it came, and each after the one before it, unless it came
// too late for that. Silence that would wait for longer than the depth and a
// frame is passed over.
func (t Track) Played() []time.Time {
	played := make([]time.Time, len(t.At))
	n := media.FrameLen(t.Rate)
	for i, came := range t.At {
		due := came.Add(Playout)
		if i > 0 {
			next := played[i-1].Add(media.FrameTime)
			switch {
			case came.After(next):
				next = came // the buffer ran dry
			case next.Sub(due) > media.FrameTime && silent(t.PCM[i*n:(i+1)*n]):
				next = played[i-1] // passed over
			}
			due = next
		}
		played[i] = due
	}
	return played
}

// Ear is when sample i is heard, by what Played returned.
func (t Track) Ear(played []time.Time, i int) time.Time {
	n := media.FrameLen(t.Rate)
	at := max(0, min(i/n, len(played)-1))
	return played[at].Add(time.Duration(i-at*n)*time.Second/time.Duration(t.Rate) - t.Lag)
}

// silent tells whether nothing in f reaches -60 dBFS.
func silent(f []int16) bool {
	for _, x := range f {
		if x > 33 || x < -33 {
			return false
		}
	}
	return true
}
