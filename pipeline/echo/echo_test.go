package echo

import (
	"math"
	"math/rand/v2"
	"testing"
)

// speech is a level that comes and goes by the syllable.
func speech(rnd *rand.Rand, n int) []float64 {
	out := make([]float64, 0, n)
	for len(out) < n {
		for range 6 + rnd.IntN(8) {
			out = append(out, -14+3*rnd.NormFloat64())
		}
		for range 2 + rnd.IntN(4) {
			out = append(out, -90)
		}
	}
	return out[:n]
}

// TestEcho: what comes back is known within a second and lies under the bound
// from then on, whatever the delay; a caller who speaks up does not.
func TestEcho(t *testing.T) {
	for _, lag := range []int{2, 5, 10, 18} {
		for _, loss := range []float64{-12, -20, -35} {
			rnd := rand.New(rand.NewPCG(uint64(lag), 1))
			var b Bound
			sent := speech(rnd, 500)
			over, calm := 0, 0
			for i, s := range sent {
				heard := -70.0
				if i >= lag {
					heard = max(heard, sent[i-lag]+loss+rnd.NormFloat64())
				}
				floor := b.Frame(s, heard)
				if i > 75 && heard > floor && heard > -50 {
					over++
				}
				if i > 75 && floor > -12 {
					calm++ // a caller at -12 dBFS would not be heard
				}
			}
			if over > 8 || loss <= -20 && calm > 0 {
				t.Errorf("lag %d, %v dB: %d frames of echo over the bound, %d with a bound that drowns callers", lag, loss, over, calm)
			}
		}
	}
}

// TestCaller: two who speak on a line without echo are not taken for one.
func TestCaller(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var b Bound
		sent, caller := speech(rnd, 500), speech(rnd, 500)
		deaf := 0
		for i := range sent {
			if floor := b.Frame(sent[i], caller[i]); floor > caller[i] && caller[i] > -40 {
				deaf++
			}
		}
		if deaf > 25 {
			t.Errorf("seed %d: %d of 500 frames of a caller were taken for echo", seed, deaf)
		}
	}
}

func TestSilenceKnowsNothing(t *testing.T) {
	var b Bound
	for range 200 {
		if f := b.Frame(-120, -60); !math.IsInf(f, -1) {
			t.Fatalf("bound %v", f)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	var b Bound
	if n := testing.AllocsPerRun(100, func() { b.Frame(-14, -34) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
