package input

import (
	"math"
	"math/rand/v2"
	"testing"
)

// naive computes correlation and return strength at a lag by definition.
func naive(b *echoBound, lag int) (alike, gain float64) {
	ago := func(ring *[echoFrames]float64, i int) float64 { return ring[(b.frames-1-i)%echoFrames] }
	var xs, ys []float64
	gain = 2 * minReturn
	loud := 0
	for i := range min(b.frames, echoFrames) - lag {
		x, y := ago(&b.sent, lag+i), max(ago(&b.received, i), quiet-10)
		xs, ys = append(xs, x), append(ys, y)
		if x > speaking {
			gain = max(gain, y-max(x, ago(&b.sent, max(0, lag-1)+i)))
			loud++
		}
	}
	mx, my := mean(xs), mean(ys)
	var vx, vy, vxy float64
	for i := range xs {
		vx += (xs[i] - mx) * (xs[i] - mx) / float64(len(xs))
		vy += (ys[i] - my) * (ys[i] - my) / float64(len(xs))
		vxy += (xs[i] - mx) * (ys[i] - my) / float64(len(xs))
	}
	if loud < minLoud || vx < minVariation*minVariation || vy < 1 {
		return 0, 0
	}
	return vxy / math.Sqrt(vx*vy), gain
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func TestClosest(t *testing.T) {
	found := 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var b echoBound
		sent := speech(rnd, 300*quarter)
		late := int(seed) % 80
		for i := quarter; i < len(sent); i += quarter {
			b.Frame(frame(sent, i), max(-70, frame(sent, i-late)-20+rnd.NormFloat64()))
			if b.frames%7 != 0 || b.frames < minFrames {
				continue
			}
			var best, gain float64
			var at int
			for lag := range min(echoLags+1, b.frames) {
				if r, g := naive(&b, lag); r > best {
					best, gain, at = r, g, lag
				}
			}
			var e envelopes
			e.take(&b)
			r, g, lag := e.closest()
			if math.Abs(r-best) > 1e-9 || best > 0 && (math.Abs(g-gain) > 1e-9 || lag != at) {
				t.Fatalf("seed %d, frame %d: got correlation %v, %v dB at %d, want %v, %v dB at %d",
					seed, b.frames, r, g, lag, best, gain, at)
			}
			if best > minEcho {
				found++
			}
		}
	}
	if found < 100 {
		t.Errorf("got %d correlated echoes, want at least 100", found)
	}
}

func BenchmarkEchoBound(b *testing.B) {
	levels := func(seed uint64) []float64 {
		power := speech(rand.New(rand.NewPCG(seed, 1)), 1000*quarter)
		var out []float64
		for i := quarter; i < len(power); i += quarter {
			out = append(out, frame(power, i))
		}
		return out
	}
	sent, voice := levels(1), levels(2)
	for _, c := range []struct {
		name  string
		heard func(i int) float64
	}{
		{"silent line", func(int) float64 { return -70 }},
		{"voice", func(i int) float64 { return voice[i] }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var bound echoBound
			i := 0
			for b.Loop() {
				i = (i + 1) % len(sent)
				bound.Frame(sent[i], c.heard(i))
			}
		})
	}
}
