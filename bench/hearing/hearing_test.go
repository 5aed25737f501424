package hearing

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/spoken"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/vad"
	"github.com/parley-voice/parley/pipeline/vad/band"
)

// scripted tells verdicts at frames.
type scripted struct {
	at    int
	tells map[int]vad.Verdict
}

func (s *scripted) Frame(media.Frame) (vad.Verdict, int) {
	v := s.tells[s.at]
	s.at++
	if v == vad.Began {
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
	s.add(c, &scripted{tells: map[int]vad.Verdict{5: vad.Began, 17: vad.Ended, 30: vad.Began, 37: vad.Ended}})
	// Told are the frames 3 to 8 and frame 28.
	want := Score{Speech: 12, Hit: 6, Other: 48, False: 1, Said: 3, Missed: 1}
	if s.Speech != want.Speech || s.Hit != want.Hit || s.Other != want.Other || s.False != want.False || s.Said != 3 || s.Missed != 1 {
		t.Errorf("%+v, want %+v", s, want)
	}
	if on := []time.Duration{0, 40 * time.Millisecond}; !slices.Equal(s.Onset, on) {
		t.Errorf("onsets %v, want %v", s.Onset, on)
	}
	// Where nothing is louder than anything else, the trail knows no better.
	if !slices.Equal(s.Faded, s.Offset) {
		t.Errorf("faded %v, want %v", s.Faded, s.Offset)
	}
	if told := []time.Duration{60 * time.Millisecond, 100 * time.Millisecond}; !slices.Equal(s.Told, told) {
		t.Errorf("told %v, want %v", s.Told, told)
	}
}

// TestClip: the mix has the ratio that was asked for, and the truth is where
// the speech is.
func TestClip(t *testing.T) {
	word, _ := tone.Say(8000, "hello")
	s := &studio{rate: 8000, maker: &spoken.Maker{Rate: 8000}, lines: [][]int16{word}}
	for _, snr := range []float64{0, 10, 20} {
		c := s.clip(condition{spoken.White, snr, true}, rand.New(rand.NewPCG(1, 2)))
		if n := len(runs(c.spoken)); n != 5 {
			t.Errorf("at %v dB: %d utterances, want 5", snr, n)
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

// TestExpect: two clouds are told apart by mixtures fitted to them.
func TestExpect(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	cloud := func(at float32) []band.Features {
		x := make([]band.Features, 2000)
		for i := range x {
			for j := range x[i] {
				x[i][j] = at + 3*float32(rnd.NormFloat64())
			}
		}
		return x
	}
	m := band.Model{Speech: expect(cloud(6), rnd), Other: expect(cloud(0), rnd)}
	right := 0
	for _, x := range cloud(6) {
		right += one(m.Ratio(&x) > 0)
	}
	for _, x := range cloud(0) {
		right += one(m.Ratio(&x) < 0)
	}
	if right < 3950 {
		t.Errorf("%d of 4000 are told right", right)
	}
	// The density of one Gaussian is what its formula says.
	g := gaussian(1, band.Features{}, func() matrix {
		c := newMatrix()
		for i := range c {
			c[i][i] = 4
		}
		return c
	}())
	x := band.Features{2}
	want := -0.5 - float64(band.Dims)*math.Log(2)
	if got := g.Density(&x); math.Abs(got-want) > 1e-5 {
		t.Errorf("density %v, want %v", got, want)
	}
}

// TestDetectorBeatsGate holds the claim of the table, for words of tones in noise.
func TestDetectorBeatsGate(t *testing.T) {
	words, _ := tone.Say(8000, "hello there")
	s := &studio{rate: 8000, maker: &spoken.Maker{Rate: 8000}, lines: [][]int16{words}, phone: true}
	var plain, model Score
	for i := range 6 {
		c := s.clip(condition{spoken.White, 3, true}, rand.New(rand.NewPCG(1, uint64(i))))
		plain.add(c, &gate{})
		model.add(c, &vad.Detector{})
	}
	if model.Hit <= plain.Hit || model.False > model.Other/50 || strings.Contains(model.row(), "NaN") {
		t.Errorf("gate %s, model %s", plain.row(), model.row())
	}
}
