// Package vad measures voice activity detection in many kinds of noise: hits, false alarms, and
// how exactly it finds start and end of speech. It also trains the model.
package vad

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/parley-voice/parley/bench/audiogen"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

// Parameters of the ground truth.
const (
	audible    = 30.0 // audio counts as speech down to this many dB below the level of the utterance
	utterances = 5    // utterances per clip
	joined     = 9    // largest number of silent frames within an utterance
)

// A condition is the kind of speech and noise in a clip.
type condition struct {
	noise  audiogen.Kind
	snr    float64 // signal-to-noise ratio in dB; +Inf means only the noise of the line
	speech bool
}

// conditions returns the conditions of the table.
func conditions() []condition {
	all := []condition{{audiogen.Line, math.Inf(1), true}}
	for _, k := range []audiogen.Kind{audiogen.White, audiogen.Pink, audiogen.Babble, audiogen.Hum, audiogen.Music} {
		for _, snr := range []float64{20, 15, 10, 5, 0} {
			all = append(all, condition{k, snr, true})
		}
	}
	for _, k := range []audiogen.Kind{audiogen.Line, audiogen.White, audiogen.Pink, audiogen.Babble, audiogen.Hum, audiogen.Music} {
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

// A clip is audio whose speech frames are known.
type clip struct {
	pcm    []int16
	rate   int
	spoken []bool    // whether each frame has speech
	clean  []float64 // level of the speech alone per frame, dBFS
	noise  float64   // level of the noise, dBFS
}

func (c *clip) frames() int { return len(c.spoken) }

func (c *clip) frame(i int) media.Frame {
	n := media.FrameLen(c.rate)
	return c.pcm[i*n : (i+1)*n]
}

// A clipMaker generates clips at one rate.
type clipMaker struct {
	rate  int
	maker *audiogen.Maker
	lines [][]int16 // audio of the possible utterances
	phone bool      // clips sound as after a telephone line
}

// newClipMaker returns a generator of clips. voices speak texts over noise; the babble voices
// make the noise of kind audiogen.Babble.
func newClipMaker(ctx context.Context, rate int, voices []audiogen.Voice, texts func(string) []string, babble []audiogen.Voice) (
	*clipMaker, error,
) {
	m, err := audiogen.NewMaker(ctx, rate, babble, audiogen.OtherTexts)
	if err != nil {
		return nil, err
	}
	s := &clipMaker{rate: rate, maker: m, phone: rate == 8000}
	for _, v := range voices {
		for _, text := range texts(v.Language) {
			pcm, err := audiogen.Say(ctx, v, text, rate)
			if err != nil {
				return nil, err
			}
			s.lines = append(s.lines, pcm)
		}
	}
	return s, nil
}

// clip generates a clip: two seconds without speech, then utterances with pauses
// of 0.7 to 2.2 s.
func (s *clipMaker) clip(c condition, rnd *rand.Rand) *clip {
	level := -18 - 10*rnd.Float64()
	clean := make([]float64, 2*s.rate)
	for range utterances {
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
	if c.noise == audiogen.Line {
		out.noise = -65
	}
	noise := s.maker.Noise(c.noise, len(clean), rnd)
	g := 32768 * math.Pow(10, out.noise/20)
	for i, x := range clean {
		out.pcm[i] = int16(max(-32768, min(32767, x+g*noise[i])))
	}
	if s.phone {
		out.pcm = audiogen.Phone(out.pcm)
	}
	out.judge(clean, level)
	return out
}

// scaled returns pcm, amplified so that its audible frames have the level in dBFS.
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

// judge derives from the speech without noise which frames have speech.
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
