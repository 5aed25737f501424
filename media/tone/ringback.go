package tone

import "time"

// Ringback returns the North American ringback tone (ITU-T E.180). It consists of two tones, each with the amplitude
// loud.
func Ringback(rate int, length time.Duration, loud float64) []int16 {
	n := rate * int(length/time.Millisecond) / 1000
	pcm, second := Sine(rate, n, 440, loud), Sine(rate, n, 480, loud)
	for i := range pcm {
		pcm[i] += second[i]
	}
	return pcm
}
