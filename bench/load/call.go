package load

import (
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/media"
)

// A turn is one line of a callee and when it was answered. Times are in ms.
type turn struct {
	number         int
	wire, ear, own float64 // own is what of ear neither the phone, nor the fakes' script asked for
	from, to       time.Time
}

// An observation is what a callee noticed in a stretch of time.
type observation struct {
	turns []turn
	dead  int // lines that nobody answered
	// Packets: those due, those that came, and of them those that came too late
	// to be played when they should.
	due, came, late int
	jitter          []float64 // by how much two packets were further apart than a frame, or nearer, in ms
}

// observe judges what was heard from one time to another.
func observe(r callee.Record, lines []callee.Line, from, to time.Time) observation {
	var o observation
	within := func(at time.Time) bool { return !at.Before(from) && at.Before(to) }
	played := r.Heard.Played()
	for i, at := range r.Heard.At {
		if i == 0 || !within(at) {
			continue
		}
		o.due++
		if !r.Heard.Real[i] {
			continue
		}
		o.came++
		if at.After(played[i-1].Add(media.FrameTime)) {
			o.late++
		}
		if r.Heard.Real[i-1] {
			o.jitter = append(o.jitter, abs(millis(at.Sub(r.Heard.At[i-1])-media.FrameTime)))
		}
	}
	levels := acoustic.Measure(r.Heard.PCM, r.Heard.Rate)
	for i, said := range r.Said {
		end := len(lines[said.Line].PCM) - 1
		sent, until := said.Sent(end, rate), r.Ended
		if i+1 < len(r.Said) {
			until = r.Said[i+1].Spoken(0, rate)
		}
		if !within(sent) {
			continue
		}
		on, ok := levels.Onset(r.Heard.Before(sent))
		if !ok || !r.Heard.Came(on).Before(until) {
			if i+1 < len(r.Said) || until.Sub(sent) > tooLong {
				o.dead++
			}
			continue // else the call ended before it could be answered
		}
		t := turn{number: said.Line, from: said.Spoken(0, rate), to: until}
		t.wire = millis(r.Heard.Came(on).Sub(sent))
		t.ear = millis(r.Heard.Ear(played, on).Sub(said.Spoken(end, rate)))
		t.own = t.ear - millis(callee.Playout) - millis(critical())
		o.turns = append(o.turns, t)
	}
	return o
}

// tooLong is a silence that is no answer to come.
const tooLong = 5 * time.Second

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func abs(v float64) float64 { return max(v, -v) }
