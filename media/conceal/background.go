package conceal

import "math"

const (
	stretch = 50    // frames of which the quietest is remembered, for one to two of these
	sampled = 2     // one of which is measured: what is quiet is quiet for longer
	ceiling = 327   // RMS of the loudest background: -40 dBFS
	floor   = 33    // RMS under which everything is silence: -60 dBFS
	covered = 4     // times the power of the background that is still no speech: 6 dB
	seed    = 22222 // of the noise; any
)

// A background is the noise behind the party's speech: the quietest frame of
// the last seconds, for speech that long has pauses in it.
type background struct {
	power, before float64 // mean square of the quietest frame of this stretch, and of the last
	frames        int
	level         uint8 // that the party told
	told          float64
	state         uint32 // of the generator
}

func newBackground() background {
	return background{power: math.Inf(1), before: math.Inf(1), state: seed}
}

// learn takes a frame that came.
func (b *background) learn(f []int16) {
	b.told = 0
	if b.frames++; b.frames > stretch {
		b.before, b.power, b.frames = b.power, math.Inf(1), 1
	}
	if b.frames%sampled == 1 {
		b.power = min(b.power, power(f))
	}
}

// tell takes the level that the party told, in -dBov.
func (b *background) tell(level uint8) {
	if b.told == 0 || level != b.level {
		b.level, b.told = level, 32768*math.Pow(10, -float64(level)/20)
	}
}

// quietest is the power of the background, infinite where nothing is known.
func (b *background) quietest() float64 { return min(b.power, b.before) }

// covers is whether a frame is no louder than the background.
func (b *background) covers(f []int16) bool {
	limit := min(ceiling*ceiling, max(floor*floor, covered*b.quietest()))
	return power(f) <= limit
}

// noise fills f with white noise as loud as the background.
func (b *background) noise(f []int16) {
	rms := b.told
	if rms == 0 {
		if q := b.quietest(); !math.IsInf(q, 1) {
			rms = math.Sqrt(q)
		}
	}
	// Evenly spread samples have a peak of √3 times their RMS.
	peak := int32(math.Round(min(rms, ceiling) * math.Sqrt(3)))
	if peak == 0 {
		clear(f)
		return
	}
	for i := range f {
		b.state = b.state*1664525 + 1013904223
		f[i] = int16(int32(int16(b.state>>16)) * peak >> 15) //nolint:gosec // the top half, scaled down
	}
}

// power is the mean square of a frame.
func power(f []int16) float64 {
	var sum int64
	for _, v := range f {
		sum += int64(v) * int64(v)
	}
	return float64(sum) / float64(max(1, len(f)))
}
