// Package tone generates and detects tones. It also encodes words as sequences of two-tone symbols, which pass through
// a telephone line and can be decoded without speech recognition.
package tone

import "math"

// Power returns the power of the tone freq (Hz) in pcm: 1 for a full-scale sine, and 0.25 for half that amplitude.
func Power(pcm []int16, rate int, freq float64) float64 {
	if len(pcm) == 0 {
		return 0
	}
	coeff := 2 * math.Cos(2*math.Pi*freq/float64(rate))
	var s1, s2 float64
	for _, x := range pcm {
		s1, s2 = float64(x)/32768+coeff*s1-s2, s1
	}
	n := float64(len(pcm)) / 2
	return (s1*s1 + s2*s2 - coeff*s1*s2) / (n * n)
}

// Share returns the share of the tone freq (Hz) in the power of pcm: 1 for a pure tone.
func Share(pcm []int16, rate int, freq float64) float64 {
	return Power(pcm, rate, freq) / (2 * math.Pow(10, Level(pcm)/10)) // the power of a sine is half the square of its amplitude
}

// Level returns the RMS level of pcm in dBFS: -3 for a full-scale sine, -120 for digital silence.
func Level(pcm []int16) float64 {
	var sum int64
	for _, x := range pcm {
		sum += int64(x) * int64(x)
	}
	if sum == 0 {
		return -120
	}
	return max(-120, 10*math.Log10(float64(sum)/(32768*32768)/float64(len(pcm))))
}

// Sine returns n samples of a sine at freq (Hz). amplitude is 0 to 1. The sine has a fade-in and a fade-out of 5 ms.
func Sine(rate, n int, freq, amplitude float64) []int16 {
	pcm := make([]int16, n)
	ramp := min(rate/200, n/2)
	for i := range pcm {
		v := amplitude * 32767 * math.Sin(2*math.Pi*freq*float64(i)/float64(rate))
		pcm[i] = int16(v * fade(i, n, ramp))
	}
	return pcm
}

// fade returns the gain of sample i of n. The gain rises in the first ramp samples and falls in the last, as a raised
// cosine.
func fade(i, n, ramp int) float64 {
	edge := min(i, n-1-i)
	if edge >= ramp {
		return 1
	}
	return 0.5 - 0.5*math.Cos(math.Pi*float64(edge)/float64(ramp))
}
