// Package tone generates and detects tones, and encodes words as sequences of
// two-tone symbols that survive a telephone line. They can be decoded without
// speech recognition.
package tone

import "math"

// Power returns the power of the tone freq (Hz) in pcm: 1 for a full-scale
// sine, 0.25 for half the amplitude.
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

// Share returns the share of pcm's power at freq (Hz): 1 for a pure tone.
func Share(pcm []int16, rate int, freq float64) float64 {
	return Power(pcm, rate, freq) / (2 * math.Pow(10, Level(pcm)/10)) // a sine has half its amplitude squared
}

// Level returns the RMS level of pcm in dBFS: -3 for a full-scale sine, -120
// for digital silence.
func Level(pcm []int16) float64 {
	var sum float64
	for _, x := range pcm {
		v := float64(x) / 32768
		sum += v * v
	}
	if sum == 0 {
		return -120
	}
	return max(-120, 10*math.Log10(sum/float64(len(pcm))))
}

// Sine returns n samples of a sine at freq (Hz) and amplitude (0 to 1), with
// fades of 5 ms.
func Sine(rate, n int, freq, amplitude float64) []int16 {
	pcm := make([]int16, n)
	ramp := min(rate/200, n/2)
	for i := range pcm {
		v := amplitude * 32767 * math.Sin(2*math.Pi*freq*float64(i)/float64(rate))
		pcm[i] = int16(v * fade(i, n, ramp))
	}
	return pcm
}

// fade returns the gain of sample i: raised cosines over the first and last
// ramp of n samples.
func fade(i, n, ramp int) float64 {
	edge := min(i, n-1-i)
	if edge >= ramp {
		return 1
	}
	return 0.5 - 0.5*math.Cos(math.Pi*float64(edge)/float64(ramp))
}
