package load

import (
	"time"

	"github.com/parley-voice/parley/bench/acoustic"
	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/media"
)

// A turn is one line of a callee with its response times in ms. wire is measured on packets, ear
// from the callee's last sample to the first sample heard.
type turn struct {
	number         int
	wire, ear, own float64 // own is ear without the jitter buffer of the callee and the delays of the fake providers
	from, to       time.Time
}

// An observation is what a callee observed in a time range.
type observation struct {
	turns []turn
	dead  int // lines without an answer
	// numbers of packets: due, received, and received too late to play
	due, came, late int
	jitter          []float64 // how much each interval between two packets differs from 20 ms, in ms
}

// observe analyzes the audio of a time range.
func observe(r callee.Record, lines []callee.Line, from, to time.Time) observation {
	var o observation
	within := func(at time.Time) bool { return !at.Before(from) && at.Before(to) }
	played := r.Heard.PlayTimes()
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
		sent, until := said.SentAt(end, rate), r.Ended
		if i+1 < len(r.Said) {
			until = r.Said[i+1].SpokenAt(0, rate)
		}
		if !within(sent) {
			continue
		}
		on, ok := levels.Onset(r.Heard.SampleAt(sent))
		if !ok || !r.Heard.ArrivedAt(on).Before(until) {
			if i+1 < len(r.Said) || until.Sub(sent) > tooLong {
				o.dead++
			}
			continue // the call ended before an answer was possible
		}
		t := turn{number: said.Line, from: said.SpokenAt(0, rate), to: until}
		t.wire = millis(r.Heard.ArrivedAt(on).Sub(sent))
		t.ear = millis(r.Heard.EarTime(played, on).Sub(said.SpokenAt(end, rate)))
		t.own = t.ear - millis(callee.Playout) - millis(critical())
		o.turns = append(o.turns, t)
	}
	return o
}

// tooLong is how long a callee waits for the answer to its last line until the line counts as unanswered.
const tooLong = 5 * time.Second

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func abs(v float64) float64 { return max(v, -v) }
