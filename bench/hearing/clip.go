// Package hearing measures how well voice activity is told: how much speech is
// hit, how much else is taken for it, and how far the edges are off, in noise
// of many kinds; and it fits the model that tells.
package hearing

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/parley-voice/parley/bench/spoken"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// Where the truth lies.
const (
	audible = 30.0 // dB under an utterance's level at which it still is there
	said    = 5    // utterances in a clip
	joined  = 9    // frames of silence inside an utterance that do not end it
)

// A condition is what a clip is mixed of.
type condition struct {
	noise  spoken.Kind
	snr    float64 // dB; +Inf: nothing but the line
	speech bool
}

// conditions are those of the table.
func conditions() []condition {
	all := []condition{{spoken.Line, math.Inf(1), true}}
	for _, k := range []spoken.Kind{spoken.White, spoken.Pink, spoken.Babble, spoken.Hum, spoken.Music} {
		for _, snr := range []float64{20, 15, 10, 5, 0} {
			all = append(all, condition{k, snr, true})
		}
	}
	for _, k := range []spoken.Kind{spoken.Line, spoken.White, spoken.Pink, spoken.Babble, spoken.Hum, spoken.Music} {
		all = append(all, condition{k, 0, false})
	}
	return all
}

func (c condition) String() string {
	switch {
	case !c.speech:
		return string(c.noise) + " alone"
	case math.IsInf(c.snr, 1):
		return "clean"
	default:
		return fmt.Sprintf("%s %.0f dB", c.noise, c.snr)
	}
}

// A clip is sound with its truth.
type clip struct {
	pcm    []int16
	rate   int
	spoken []bool    // of each frame
	clean  []float64 // level of the speech alone in each frame, dBFS
	noise  float64   // level of the noise, dBFS
}

// frames is how many there are.
func (c *clip) frames() int { return len(c.spoken) }

// frame is the i-th.
func (c *clip) frame(i int) media.Frame {
	n := media.FrameLen(c.rate)
	return c.pcm[i*n : (i+1)*n]
}

// A studio makes clips at one rate.
type studio struct {
	rate  int
	maker *spoken.Maker
	lines [][]int16 // utterances
	phone bool      // clips pass a telephone line
}

func newStudio(ctx context.Context, rate int, voices []spoken.Voice, texts func(string) []string, babble []spoken.Voice) (*studio, error) {
	m, err := spoken.NewMaker(ctx, rate, babble, spoken.OtherTexts)
	if err != nil {
		return nil, err
	}
	s := &studio{rate: rate, maker: m, phone: rate == 8000}
	for _, v := range voices {
		for _, text := range texts(v.Language) {
			pcm, err := spoken.Say(ctx, v, text, rate)
			if err != nil {
				return nil, err
			}
			s.lines = append(s.lines, pcm)
		}
	}
	return s, nil
}

// clip makes one: two seconds without speech, then utterances with pauses of
// 0.7 to 2.2 s between them.
func (s *studio) clip(c condition, rnd *rand.Rand) *clip {
	level := -18 - 10*rnd.Float64()
	clean := make([]float64, 2*s.rate)
	for range said {
		if c.speech {
			clean = append(clean, scaled(s.lines[rnd.IntN(len(s.lines))], level)...)
		} else {
			clean = append(clean, make([]float64, 2*s.rate)...)
		}
		clean = append(clean, make([]float64, int(float64(s.rate)*(0.7+1.5*rnd.Float64())))...)
	}
	n := media.FrameLen(s.rate)
	clean = clean[:len(clean)/n*n]
	out := &clip{rate: s.rate, pcm: make([]int16, len(clean)), noise: level - c.snr}
	if c.noise == spoken.Line {
		out.noise = -65
	}
	noise := s.maker.Noise(c.noise, len(clean), rnd)
	g := 32768 * math.Pow(10, out.noise/20)
	for i, x := range clean {
		out.pcm[i] = int16(max(-32768, min(32767, x+g*noise[i])))
	}
	if s.phone {
		out.pcm = spoken.Phone(out.pcm)
	}
	out.judge(clean, level)
	return out
}

// scaled returns pcm at the level (dBFS) of its audible frames.
func scaled(pcm []int16, level float64) []float64 {
	var sum, n float64
	for at := 0; at+80 <= len(pcm); at += 80 {
		if tone.Level(pcm[at:at+80]) > -50 {
			for _, x := range pcm[at : at+80] {
				sum += float64(x) * float64(x)
			}
			n += 80
		}
	}
	g := 32768 * math.Pow(10, level/20) / math.Sqrt(max(sum, 1)/max(n, 1))
	out := make([]float64, len(pcm))
	for i, x := range pcm {
		out[i] = g * float64(x)
	}
	return out
}

// judge sets the truth by the energy of what was said.
func (c *clip) judge(clean []float64, level float64) {
	n := media.FrameLen(c.rate)
	last := -joined - 1
	for at := 0; at < len(clean); at += n {
		var sum float64
		for _, x := range clean[at : at+n] {
			sum += x * x
		}
		db := 10 * math.Log10(sum/float64(n)/(32768*32768)+1e-12)
		i := len(c.spoken)
		c.clean = append(c.clean, db)
		c.spoken = append(c.spoken, db > level-audible)
		if !c.spoken[i] {
			continue
		}
		if i-last <= joined {
			for j := last + 1; j < i; j++ {
				c.spoken[j] = true
			}
		}
		last = i
	}
}
