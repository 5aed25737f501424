package conceal

import "math"

const (
	loops = 3  // periods in the longest loop: a single one buzzes
	match = 20 // ms of sound by which the period is found
	// Periods are from 2.5 to 15 ms, in quarters of a millisecond.
	shortest = 10
	longest  = 60

	periodic = 0.4 // likeness under which a sound has no pitch, and is a click or a hiss
	brief    = 20  // ms that such a sound goes on, for it would become a tone
	risen    = 16  // times the power of before that is a sound which has just begun
)

// A loop says the last periods of a sound again and again: one of them for the
// first 10 ms, then two, then three.
type loop struct {
	perMs  int
	past   []int16 // the sound
	sound  []int16 // the periods that are said, joined end to beginning
	period int     // in samples
	count  int     // of periods
	at     int
	spent  int // samples said

	step int // by which the sound would jump where the loop began or grew
	left int // samples over which that is still evened out
}

// begin makes a loop of the end of a sound, which is in two parts.
func (l *loop) begin(older, newer []int16) {
	copy(l.past[copy(l.past, older):], newer)
	period, like := pitch(l.past, l.perMs)
	l.period, l.count, l.at, l.spent = period, 1, 0, 0
	if like < periodic || l.onset() {
		l.spent = (gone - brief) * l.perMs
	}
	l.cut()
	last := len(l.past) - 1
	l.step, l.left = int(l.past[last])-int(l.past[last-l.period]), l.seam()
}

// onset is whether the sound has just begun. Then it goes on for no longer than
// it was heard.
func (l *loop) onset() bool {
	n := match * l.perMs
	begun := len(l.past) - n
	return power(l.past[begun:]) > risen*power(l.past[begun-n:begun])
}

// seam is how many samples a blend takes.
func (l *loop) seam() int { return l.period / 4 }

// cut copies the periods. Their end is blended with what led to their
// beginning.
func (l *loop) cut() {
	n, q := l.count*l.period, l.seam()
	from := len(l.past) - n
	copy(l.sound, l.past[from:])
	for i := range q {
		l.sound[n-q+i] = mix(l.sound[n-q+i], l.past[from-q+i], i, q)
	}
}

// say is the next sample. It may be beyond 16 bits.
func (l *loop) say() int {
	if l.spent > 0 && l.spent%(steady*l.perMs) == 0 && l.count < loops {
		l.grow()
	}
	v := int(l.sound[l.at])
	if l.left > 0 {
		v += l.step * l.left / l.seam()
		l.left--
	}
	l.spent++
	if l.at++; l.at == l.count*l.period {
		l.at = 0
	}
	return v
}

// grow goes on at the same phase of one more period, save where that is of
// louder sound, which has ended.
func (l *loop) grow() {
	end, older := len(l.past), len(l.past)-l.count*l.period
	if power(l.past[older-l.period:older]) > covered*power(l.past[end-l.period:]) {
		return
	}
	before := int(l.sound[l.at])
	l.count++
	l.cut()
	l.at %= l.period
	l.step, l.left = before-int(l.sound[l.at]), l.seam()
}

// pitch finds the period of the end of past, in samples: the lag by which it
// is most like itself, coarsely first. like is how much so, 1 for the same.
func pitch(past []int16, perMs int) (period int, like float64) {
	step := perMs / 4
	period, most := longest*step, 0.0
	for lag := shortest * step; lag <= longest*step; lag += step {
		if l := alike(past, match*perMs, lag, step); l > most {
			period, most = lag, l
		}
	}
	from, to := max(shortest*step, period-step+1), min(longest*step, period+step-1)
	most = 0
	for lag := from; lag <= to; lag++ {
		if l := alike(past, match*perMs, lag, 1); l > most {
			period, most = lag, l
		}
	}
	if most == 0 {
		return period, 0
	}
	return period, most / math.Sqrt(power(past[len(past)-match*perMs:])*float64(match*perMs))
}

// alike is how much the last n samples are like those lag before, looking at
// one of step: their correlation, but for the power of the last n.
func alike(past []int16, n, lag, step int) float64 {
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
