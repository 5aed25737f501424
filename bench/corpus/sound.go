package corpus

import (
	"math"
	"time"
)

// Bounds of the length of coughs, which is uniformly distributed.
const (
	ShortestCough = 120 * time.Millisecond
	LongestCough  = 400 * time.Millisecond
)

// coughLevel is the root mean square of a cough at its loudest point, relative to full scale. A
// word is about as loud.
const coughLevel = 0.25

// Cough returns a noise burst of length d at rate (Hz). It rises within 10 ms and fades by 12 dB.
// High frequencies are damped.
func (s *Speaker) Cough(rate int, d time.Duration) []int16 {
	pcm := make([]int16, int(d*time.Duration(rate)/time.Second))
	ramp := min(rate/100, len(pcm)/2)
	low := 0.0
	for i := range pcm {
		low += 0.5 * (s.rnd.NormFloat64() - low)
		v := low * math.Sqrt(3) // the filter passes a third of the power
		v *= coughLevel * math.Pow(10, -12.0/20*float64(i)/float64(len(pcm)))
		v *= min(1, float64(i)/float64(ramp), float64(len(pcm)-1-i)/float64(ramp))
		pcm[i] = int16(32767 * max(-1, min(1, v)))
	}
	return pcm
}
