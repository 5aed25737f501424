package vad

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

type edge struct {
	began bool
	at    time.Duration // start of the frame of the edge, which is earlier than the verdict
}

// run plays pcm to a detector and returns the edges.
func run(pcm []int16) []edge {
	var d Detector
	var edges []edge
	f := make(media.Frame, 160)
	for i := 0; i+160 <= len(pcm); i += 160 {
		copy(f, pcm[i:])
		v, back := d.Frame(f)
		at := time.Duration(i/160-back) * media.FrameTime
		switch v {
		case SpeechStart:
			edges = append(edges, edge{true, at})
		case SpeechEnd:
			edges = append(edges, edge{false, at + media.FrameTime})
		case NoChange, Onset, OnsetDropped:
		}
	}
	return edges
}

func noise(n int, amplitude float64) []int16 {
	rnd := rand.New(rand.NewPCG(3, 4))
	pcm := make([]int16, n)
	for i := range pcm {
		pcm[i] = int16(amplitude * rnd.NormFloat64())
	}
	return pcm
}

func TestEdges(t *testing.T) {
	speech, _ := tone.Encode(8000, "hello there my friend")
	length := time.Duration(len(speech)) * time.Second / 8000
	for name, hiss := range map[string]float64{"silent line": 0, "noisy line": 100, "loud noise": 400} {
		line := noise(8000*4, hiss)
		for i, x := range speech {
			line[8000*2+i] += x
		}
		got := run(line)
		if len(got) != 2 || !got[0].began || got[1].began {
			t.Errorf("%s: edges %v", name, got)
			continue
		}
		if d := (got[0].at - 2*time.Second).Abs(); d > media.FrameTime {
			t.Errorf("%s: onset %v off", name, d)
		}
		if d := (got[1].at - 2*time.Second - length).Abs(); d > media.FrameTime {
			t.Errorf("%s: offset %v off", name, d)
		}
	}
}

func TestNoSpeechInNoise(t *testing.T) {
	for _, amplitude := range []float64{0, 50, 200} {
		if got := run(noise(8000*20, amplitude)); len(got) > 0 {
			t.Errorf("noise of %v: %v", amplitude, got)
		}
	}
}

func TestClickIsNoSpeech(t *testing.T) {
	line := noise(8000, 20)
	for i := 4000; i < 4160; i++ {
		line[i] = 20000
	}
	if got := run(line); len(got) > 0 {
		t.Errorf("a click: %v", got)
	}
}

func TestFrameAllocatesNothing(t *testing.T) {
	var d Detector
	f := make(media.Frame, 160)
	if n := testing.AllocsPerRun(100, func() { d.Frame(f) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// verdicts plays frames of a tone and of silence, one per letter, and returns the verdict of
// each frame.
func verdicts(d *Detector, frames string) map[int]Verdict {
	all := map[int]Verdict{}
	speech := tone.Sine(8000, 160, 600, 0.3)
	for i, x := range frames {
		f := make(media.Frame, 160)
		if x == 'x' {
			f = speech
		}
		if v, _ := d.Frame(f); v != NoChange {
			all[i] = v
		}
	}
	return all
}

func TestStirs(t *testing.T) {
	for frames, want := range map[string]map[int]Verdict{
		"............x.........":                {},
		"............xx........":                {13: Onset, 15: OnsetDropped},
		"............xxx...............":        {13: Onset, 14: SpeechStart, 22: SpeechEnd},
		"............xx.x..............":        {13: Onset, 15: SpeechStart, 23: SpeechEnd},
		"............x.xx..............":        {15: SpeechStart, 23: SpeechEnd},
		"............xx..xx..xxx..............": {13: Onset, 15: OnsetDropped, 17: Onset, 19: OnsetDropped, 21: Onset, 22: SpeechStart, 30: SpeechEnd},
	} {
		if got := verdicts(&Detector{}, frames); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", frames, got, want)
		}
	}
}

// TestFloor checks that input below the floor is not speech until the floor is removed.
func TestFloor(t *testing.T) {
	const frames = "............xxxxxx.............."
	for floor, heard := range map[float64]bool{
		math.Inf(-1): true, math.NaN(): true, -60: true, -20: true, -10: false, 0: false, math.Inf(1): false,
	} {
		var d Detector
		d.SetFloor(floor) // the tone is at -13.5 dBFS
		if got := verdicts(&d, frames); len(got) > 0 != heard {
			t.Errorf("with a floor of %v: %v", floor, got)
		}
		d.SetFloor(math.Inf(-1))
		if got := verdicts(&d, frames); len(got) != 3 {
			t.Errorf("after a floor of %v: %v", floor, got)
		}
	}
}

func TestLevel(t *testing.T) {
	var d Detector
	for want, amplitude := range map[float64]float64{-120: 0, -43: 0.01, -23: 0.1, -3: 1} {
		pcm := tone.Sine(8000, 1600, 1000, amplitude)
		d.Frame(pcm[800:960])
		if math.Abs(d.Level()-want) > 0.2 {
			t.Errorf("amplitude %v is at %.2f dBFS, want %v", amplitude, d.Level(), want)
		}
	}
}

// TestAnySound checks, for random input, that verdicts come in order and that no level is NaN.
func TestAnySound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Detector
		n := rapid.SampledFrom([]int{160, 320}).Draw(t, "samples")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		speaking, stirred := false, false
		gain := 0.0
		for i := range rapid.IntRange(1, 400).Draw(t, "frames") {
			if i%10 == 0 {
				gain = math.Pow(10, 5*rnd.Float64())
			}
			f := make(media.Frame, n)
			for j := range f {
				f[j] = int16(max(-32768, min(32767, gain*rnd.NormFloat64())))
			}
			v, back := d.Frame(f)
			ok := back >= 0 && back < 16 && !math.IsNaN(d.Level())
			switch v {
			case SpeechStart:
				ok = ok && !speaking
				speaking, stirred = true, false
			case SpeechEnd:
				ok = ok && speaking
				speaking = false
			case Onset:
				ok = ok && !speaking && !stirred
				stirred = true
			case OnsetDropped:
				ok = ok && stirred
				stirred = false
			case NoChange:
			}
			if !ok || speaking != d.Speaking() {
				t.Fatalf("frame %d: verdict %d, back %d", i, v, back)
			}
		}
	})
}

// TestHum checks that mains hum is not speech at either rate.
func TestHum(t *testing.T) {
	for _, rate := range []int{8000, 16000} {
		var d Detector
		hum := tone.Sine(rate, 10*rate, 100, 0.05)
		for at := 0; at < len(hum); at += rate / 50 {
			if v, _ := d.Frame(hum[at : at+rate/50]); v == SpeechStart && at > 3*rate {
				t.Errorf("%d Hz: begins after %d ms", rate, at*1000/rate)
			}
		}
	}
}
