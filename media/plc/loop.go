package plc

import "math"

const (
	loops = 3  // maximum number of periods in the loop; repeating a single period would buzz
	match = 20 // ms of audio that are compared to find the period
	// A period lasts 2.5 to 15 ms. These limits are in quarters of a millisecond.
	shortest = 10
	longest  = 60

	periodic   = 0.4 // audio with less correlation has no pitch, like a click or a hiss
	noiseMs    = 20  // ms for which audio without pitch is repeated; for longer it would sound like a tone
	onsetRatio = 16  // if the power grew by this factor, the audio has just begun
)

// loop repeats the last periods of the audio: first one period, after 10 ms two, and then three.
type loop struct {
	perMs   int
	history []int16 // audio before the loss
	sound   []int16 // the repeated periods, with the end blended into the beginning
	period  int     // length of a period in samples
	count   int     // number of periods in the loop
	at      int
	played  int // number of samples played

	step int // step in the signal where the loop began or grew
	left int // samples over which the step is still to be smoothed
}

// begin makes a loop from the end of the audio, which is given in two parts.
func (l *loop) begin(older, newer []int16) {
	copy(l.history[copy(l.history, older):], newer)
	period, correlated := pitch(l.history, l.perMs)
	l.period, l.count, l.at, l.played = period, 1, 0, 0
	if correlated < periodic || l.isOnset() {
		l.played = (silentAfter - noiseMs) * l.perMs
	}
	l.cut()
	last := len(l.history) - 1
	l.step, l.left = int(l.history[last])-int(l.history[last-l.period]), l.seam()
}

// isOnset reports whether the audio has just begun. Such audio is repeated no longer than it lasted.
func (l *loop) isOnset() bool {
	n := match * l.perMs
	onset := len(l.history) - n
	return power(l.history[onset:]) > onsetRatio*power(l.history[onset-n:onset])
}

func (l *loop) seam() int { return l.period / 4 }

// cut copies the periods. It blends their end with the audio before their beginning.
func (l *loop) cut() {
	n, q := l.count*l.period, l.seam()
	from := len(l.history) - n
	copy(l.sound, l.history[from:])
	for i := range q {
		l.sound[n-q+i] = mix(l.sound[n-q+i], l.history[from-q+i], i, q)
	}
}

// next returns the next sample. Its value may exceed 16 bits.
func (l *loop) next() int {
	if l.played > 0 && l.played%(steady*l.perMs) == 0 && l.count < loops {
		l.grow()
	}
	v := int(l.sound[l.at])
	if l.left > 0 {
		v += l.step * l.left / l.seam()
		l.left--
	}
	l.played++
	if l.at++; l.at == l.count*l.period {
		l.at = 0
	}
	return v
}

// grow adds the period before the loop and keeps the phase. It adds nothing if that period is much louder, because it
// then belongs to audio that had ended.
func (l *loop) grow() {
	end, older := len(l.history), len(l.history)-l.count*l.period
	if power(l.history[older-l.period:older]) > backgroundRatio*power(l.history[end-l.period:]) {
		return
	}
	before := int(l.sound[l.at])
	l.count++
	l.cut()
	l.at %= l.period
	l.step, l.left = before-int(l.sound[l.at]), l.seam()
}

// pitch returns the period at the end of past, in samples: the lag with the highest correlation. It searches in
// coarse steps first. correlated is that correlation, 1 if the periods are identical.
func pitch(past []int16, perMs int) (period int, correlated float64) {
	step := perMs / 4
	period, most := longest*step, 0.0
	for lag := shortest * step; lag <= longest*step; lag += step {
		if l := correlation(past, match*perMs, lag, step); l > most {
			period, most = lag, l
		}
	}
	from, to := max(shortest*step, period-step+1), min(longest*step, period+step-1)
	most = 0
	for lag := from; lag <= to; lag++ {
		if l := correlation(past, match*perMs, lag, 1); l > most {
			period, most = lag, l
		}
	}
	if most == 0 {
		return period, 0
	}
	return period, most / math.Sqrt(power(past[len(past)-match*perMs:])*float64(match*perMs))
}

// correlation returns the correlation of the last n samples with the samples that are lag earlier. It uses only every
// step-th sample, and does not divide by the power of the last n samples.
func correlation(past []int16, n, lag, step int) float64 {
	now := past[len(past)-n:]
	then := past[len(past)-n-lag : len(past)-lag]
	var product, power int64
	for i := 0; i < n; i += step {
		b := int64(then[i])
		product += int64(now[i]) * b
		power += b * b
	}
	if product <= 0 {
		return 0
	}
	return float64(product) / math.Sqrt(float64(power))
}
