package input

import (
	"math"
	"math/rand/v2"
	"testing"
)

// quarter is the number of level steps per frame, because echoes do not align with frames.
const quarter = 4

// speech returns the power of a voice with syllables and pauses.
func speech(rnd *rand.Rand, n int) []float64 {
	out := make([]float64, 0, n)
	for len(out) < n {
		loud := -14 + 2*rnd.NormFloat64()
		for range 12 + rnd.IntN(48) {
			out = append(out, math.Pow(10, (loud+rnd.NormFloat64())/10))
		}
		for range 10 + rnd.IntN(14) {
			out = append(out, 1e-9)
		}
	}
	return out[:n]
}

// frame returns the level of the frame that ends at step end.
func frame(power []float64, end int) float64 {
	var sum float64
	for i := end - quarter; i < end; i++ {
		if i >= 0 {
			sum += power[i]
		}
	}
	return 10 * math.Log10(sum/quarter+1e-12)
}

// TestEcho checks that an echo is known after 0.75 s and then lies below the bound at any
// delay, while a caller's voice lies above it.
func TestEcho(t *testing.T) {
	for _, late := range []int{8, 9, 21, 38, 47, 70} {
		for _, loss := range []float64{-12, -20, -35} {
			for seed := range uint64(20) {
				rnd := rand.New(rand.NewPCG(uint64(late), seed))
				var b echoBound
				sent := speech(rnd, 500*quarter)
				over, calm := 0, 0
				for i := quarter; i < len(sent); i += quarter {
					heard := max(-70, frame(sent, i-late)+loss+0.5*rnd.NormFloat64())
					floor := b.Frame(frame(sent, i), heard)
					if i > 45*quarter && heard > floor && heard > -50 {
						over++
					}
					if i > 45*quarter && floor > -12 {
						calm++ // a caller at -12 dBFS would count as echo in this frame
					}
				}
				if over > 20 || loss <= -20 && calm > 0 {
					t.Errorf("%d ms late, %v dB, seed %d: got %d frames of echo above the bound, %d with a bound above callers", late*5, loss, seed, over, calm)
				}
			}
		}
	}
}

// TestCaller checks that two people who speak on a line without echo are not taken for one
// person and an echo.
func TestCaller(t *testing.T) {
	taken := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var b echoBound
		sent, caller := speech(rnd, 500*quarter), speech(rnd, 500*quarter)
		deaf := 0
		for i := quarter; i < len(sent); i += quarter {
			heard := frame(caller, i) - 8
			if floor := b.Frame(frame(sent, i), heard); floor > heard && heard > -40 {
				deaf++
			}
		}
		if deaf > 25 {
			taken++
		}
	}
	if taken > 30 {
		t.Errorf("got %d of 300 double-talking callers taken for echo, want at most 30", taken)
	}
}

func TestSilenceKnowsNothing(t *testing.T) {
	var b echoBound
	for range 200 {
		if f := b.Frame(-120, -60); !math.IsInf(f, -1) {
			t.Fatalf("got bound %v, want -Inf", f)
		}
	}
}

func TestEchoAllocations(t *testing.T) {
	var b echoBound
	if n := testing.AllocsPerRun(100, func() { b.Frame(-14, -34) }); n != 0 {
		t.Errorf("got %v allocations per frame, want 0", n)
	}
}
