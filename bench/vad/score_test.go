package vad

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/audiogen"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/vad"
	"github.com/parley-voice/parley/pipeline/vad/gmm"
)

// scripted is a detector with fixed verdicts at fixed frames.
type scripted struct {
	at       int
	verdicts map[int]vad.Verdict
}

func (s *scripted) Frame(media.Frame) (vad.Verdict, int) {
	v := s.verdicts[s.at]
	s.at++
	if v == vad.SpeechStart {
		return v, 2
	}
	return v, 9
}

func truth(s string) *clip {
	c := &clip{rate: 8000, pcm: make([]int16, 160*len(s))}
	for _, x := range s {
		c.spoken = append(c.spoken, x == 'x')
	}
	return c
}

func TestScore(t *testing.T) {
	c := truth("...xxxxx..................xxxxx...................xx........")
	var s Score
	s.add(c, &scripted{verdicts: map[int]vad.Verdict{5: vad.SpeechStart, 17: vad.SpeechEnd, 30: vad.SpeechStart, 37: vad.SpeechEnd}})
	// Verdicts at frames 3 to 8, and at frame 28.
	want := Score{Speech: 12, Hit: 6, Other: 48, False: 1, Said: 3, Missed: 1}
	if s.Speech != want.Speech || s.Hit != want.Hit || s.Other != want.Other || s.False != want.False || s.Said != 3 || s.Missed != 1 {
		t.Errorf("got %+v, want %+v", s, want)
	}
	if on := []time.Duration{0, 40 * time.Millisecond}; !slices.Equal(s.Onset, on) {
		t.Errorf("got onsets %v, want %v", s.Onset, on)
	}
	// At a constant level, the level history finds the same end as the detector.
	if !slices.Equal(s.Faded, s.Offset) {
		t.Errorf("got faded %v, want %v", s.Faded, s.Offset)
	}
	if delays := []time.Duration{60 * time.Millisecond, 100 * time.Millisecond}; !slices.Equal(s.Reported, delays) {
		t.Errorf("got delays %v, want %v", s.Reported, delays)
	}
}

// TestClip checks that a clip has the requested signal-to-noise ratio, and that its speech frames
// are marked as speech.
func TestClip(t *testing.T) {
	word, _ := tone.Encode(8000, "hello")
	s := &clipMaker{rate: 8000, maker: &audiogen.Maker{Rate: 8000}, lines: [][]int16{word}}
	for _, snr := range []float64{0, 10, 20} {
		c := s.clip(condition{audiogen.White, snr, true}, rand.New(rand.NewPCG(1, 2)))
		if n := len(runs(c.spoken)); n != 5 {
			t.Errorf("at %v dB: got %d utterances, want 5", snr, n)
		}
		var speech, noise []float64
		for i, is := range c.spoken {
			p := math.Pow(10, tone.Level(c.frame(i))/10)
			if is {
				speech = append(speech, p)
			} else {
				noise = append(noise, p)
			}
		}
		mean := func(x []float64) float64 {
			sum := 0.0
			for _, v := range x {
				sum += v
			}
			return sum / float64(len(x))
		}
		if got := 10 * math.Log10(mean(speech)/mean(noise)-1); math.Abs(got-snr) > 1 {
			t.Errorf("asked for %v dB, mixed %.1f", snr, got)
		}
	}
}

// TestExpect checks that mixtures fitted to two separate sets of features distinguish the sets.
func TestExpect(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	cloud := func(at float32) []gmm.Features {
		x := make([]gmm.Features, 2000)
		for i := range x {
			for j := range x[i] {
				x[i][j] = at + 3*float32(rnd.NormFloat64())
			}
		}
		return x
	}
	m := gmm.Model{Speech: expect(cloud(6), rnd), Other: expect(cloud(0), rnd)}
	right := 0
	for _, x := range cloud(6) {
		right += one(m.Ratio(&x) > 0)
	}
	for _, x := range cloud(0) {
		right += one(m.Ratio(&x) < 0)
	}
	if right < 3950 {
		t.Errorf("got %d of 4000 right", right)
	}
	// The density of one Gaussian matches the formula.
	g := gaussian(1, gmm.Features{}, func() matrix {
		c := newMatrix()
		for i := range c {
			c[i][i] = 4
		}
		return c
	}())
	x := gmm.Features{2}
	want := -0.5 - float64(gmm.Dims)*math.Log(2)
	if got := g.Density(&x); math.Abs(got-want) > 1e-5 {
		t.Errorf("got density %v, want %v", got, want)
	}
}

// TestDetectorBeatsGate checks that the detector is better than the energy gate on tone words in noise.
func TestDetectorBeatsGate(t *testing.T) {
	words, _ := tone.Encode(8000, "hello there")
	s := &clipMaker{rate: 8000, maker: &audiogen.Maker{Rate: 8000}, lines: [][]int16{words}, phone: true}
	var plain, model Score
	for i := range 6 {
		c := s.clip(condition{audiogen.White, 3, true}, rand.New(rand.NewPCG(1, uint64(i))))
		plain.add(c, &gate{})
		model.add(c, &vad.Detector{})
	}
	if model.Hit <= plain.Hit || model.False > model.Other/50 || strings.Contains(model.row(), "NaN") {
		t.Errorf("gate %s, model %s", plain.row(), model.row())
	}
}
