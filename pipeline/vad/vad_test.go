package vad

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
)

type edge struct {
	began bool
	at    time.Duration // of the edge, not of the verdict
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
		case Began:
			edges = append(edges, edge{true, at})
		case Ended:
			edges = append(edges, edge{false, at + media.FrameTime})
		case Same:
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
	speech, _ := tone.Say(8000, "hello there my friend")
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
