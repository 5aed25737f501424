package vad

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/bench/audiogen"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline/vad"
)

// A detector is a measured algorithm. back is by how many frames the verdict is late.
type detector interface {
	Frame(f media.Frame) (v vad.Verdict, back int)
}

// A Score is the result of a detector in a condition.
type Score struct {
	Speech, Hit  int // number of speech frames, and how many of them were detected
	Other, False int // number of other frames, and how many of them were taken for speech
	Said, Missed int // number of utterances, and how many of them were missed completely
	// Onset and Offset are the absolute errors of the detected start and end of utterances. Faded
	// is the error of the end according to the level history. Reported is the delay until the
	// detector reports the start.
	Onset, Offset, Faded, Reported []time.Duration
}

// Options configure Run.
type Options struct {
	Clips int // clips per condition and rate, of five utterances each
	// Progress is called after every condition.
	Progress func(done, all int)
}

// Run measures the energy gate and the detector, and writes a table per rate.
func Run(ctx context.Context, out io.Writer, o Options) error {
	all := conditions()
	for r, rate := range []int{8000, 16000} {
		s, err := newClipMaker(ctx, rate, audiogen.Voices(), audiogen.Texts, audiogen.Others())
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(
			t,
			"%d kHz\tgate:\thit\tfalse\tmissed\tonset\treported\toffset\tmodel:\thit\tfalse\tmissed\tonset\treported\toffset\tfaded\t\n",
			rate/1000,
		)
		for i, c := range all {
			if err = ctx.Err(); err != nil {
				return err
			}
			rnd := rand.New(rand.NewPCG(uint64(rate), uint64(i))) //nolint:gosec // repeatable on purpose
			var plain, model Score
			for range o.Clips {
				k := s.clip(c, rnd)
				plain.add(k, &gate{})
				model.add(k, &vad.Detector{})
			}
			fmt.Fprintf(t, "%s\t\t%s\t\t%s\t%s\t\n", c, plain.row(), model.row(), middle(model.Faded))
			o.Progress(r*len(all)+i+1, 2*len(all))
		}
		if err = t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}

func (s *Score) row() string {
	share := func(n, of int) string {
		if of == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
	}
	if s.Said == 0 {
		return "–\t" + share(s.False, s.Other) + "\t–\t–\t–\t–"
	}
	return fmt.Sprintf("%s\t%s\t%d/%d\t%s\t%s\t%s", share(s.Hit, s.Speech), share(s.False, s.Other), s.Missed, s.Said,
		middle(s.Onset), middle(s.Reported), middle(s.Offset))
}

// middle formats the median and p95 in milliseconds.
func middle(d []time.Duration) string {
	if len(d) == 0 {
		return "–"
	}
	slices.Sort(d)
	return fmt.Sprintf("%d/%d", d[len(d)/2].Milliseconds(), d[len(d)*95/100].Milliseconds())
}

// A stretch is a run of speech frames, from up to but not including to. The detector reported it
// at frame reported. According to the level history it ended before frame faded.
type stretch struct{ from, to, reported, faded int }

// add runs a detector on a clip and scores it.
func (s *Score) add(c *clip, d detector) {
	heard := listen(c, d)
	taken := make([]bool, c.frames())
	for _, h := range heard {
		for i := max(0, h.from); i < h.to; i++ {
			taken[i] = true
		}
	}
	for i, is := range c.spoken {
		if is {
			s.Speech++
			s.Hit += one(taken[i])
		} else {
			s.Other++
			s.False += one(taken[i])
		}
	}
	for _, u := range runs(c.spoken) {
		s.Said++
		over := slices.Collect(func(yield func(stretch) bool) {
			for _, h := range heard {
				if h.from < u.to && h.to > u.from && !yield(h) {
					return
				}
			}
		})
		if len(over) == 0 {
			s.Missed++
			continue
		}
		first, last := over[0], over[len(over)-1]
		s.Onset = append(s.Onset, (time.Duration(first.from-u.from) * media.FrameTime).Abs())
		s.Offset = append(s.Offset, (time.Duration(last.to-u.to) * media.FrameTime).Abs())
		s.Faded = append(s.Faded, (time.Duration(last.faded-u.to) * media.FrameTime).Abs())
		s.Reported = append(s.Reported, max(0, time.Duration(first.reported+1-u.from)*media.FrameTime))
	}
}

// listen returns the stretches of speech that d detects.
func listen(c *clip, d detector) []stretch {
	var heard []stretch
	var trail vad.LevelHistory
	speaking := false
	for i := range c.frames() {
		trail.Frame(c.frame(i), false)
		switch v, back := d.Frame(c.frame(i)); v {
		case vad.SpeechStart:
			heard = append(heard, stretch{i - back, c.frames(), i, c.frames()})
			speaking = true
		case vad.SpeechEnd:
			if speaking {
				last, _ := trail.LastVoiced(back)
				heard[len(heard)-1].to, heard[len(heard)-1].faded = i-back+1, i-last+1
			}
			speaking = false
		default:
		}
	}
	return heard
}

// runs returns the stretches of successive true values.
func runs(of []bool) []stretch {
	var all []stretch
	for i, is := range of {
		switch {
		case is && (i == 0 || !of[i-1]):
			all = append(all, stretch{from: i, to: len(of)})
		case !is && i > 0 && of[i-1]:
			all[len(all)-1].to = i
		}
	}
	return all
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
