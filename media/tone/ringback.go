package tone

import "time"

// Ringback is what a caller hears while a phone rings, in North America (ITU-T
// E.180): two tones, each of a peak of loud of full scale.
func Ringback(rate int, length time.Duration, loud float64) []int16 {
	n := rate * int(length/time.Millisecond) / 1000
	pcm, over := Sine(rate, n, 440, loud), Sine(rate, n, 480, loud)
	for i := range pcm {
		pcm[i] += over[i]
	}
	return pcm
}
