package plc

import "math"

const (
	spanFrames      = 50    // frames in a span; the power of the quietest frame is kept for one to two spans
	sampleEvery     = 2     // only every second frame is measured, because a quiet part lasts longer than one frame
	ceiling         = 327   // maximum RMS of the background: -40 dBFS
	floor           = 33    // minimum RMS of the background: -60 dBFS
	backgroundRatio = 4     // a frame at most 6 dB louder than the background is not speech
	seed            = 22222 // start value of the noise generator
)

// background estimates the noise behind speech. It takes the quietest frame of the last seconds, because speech has
// pauses.
type background struct {
	power, before float64 // mean square of the quietest frame in the current and in the previous span
	frames        int
	level         uint8 // noise level that the sender reported
	reported      float64
	state         uint32 // state of the noise generator
}

func newBackground() background {
	return background{power: math.Inf(1), before: math.Inf(1), state: seed}
}

func (b *background) learn(f []int16) {
	b.reported = 0
	if b.frames++; b.frames > spanFrames {
		b.before, b.power, b.frames = b.power, math.Inf(1), 1
	}
	if b.frames%sampleEvery == 1 {
		b.power = min(b.power, power(f))
	}
}

// setLevel sets a noise level that the sender reported, in -dBov.
func (b *background) setLevel(level uint8) {
	if b.reported == 0 || level != b.level {
		b.level, b.reported = level, 32768*math.Pow(10, -float64(level)/20)
	}
}

// quietest returns the power of the background, or infinity if it is unknown.
func (b *background) quietest() float64 { return min(b.power, b.before) }

// contains reports whether a frame is no louder than the background.
func (b *background) contains(f []int16) bool {
	limit := min(ceiling*ceiling, max(floor*floor, backgroundRatio*b.quietest()))
	return power(f) <= limit
}

// noise fills f with white noise at the background level.
func (b *background) noise(f []int16) {
	rms := b.reported
	if rms == 0 {
		if q := b.quietest(); !math.IsInf(q, 1) {
			rms = math.Sqrt(q)
		}
	}
	// The peak of uniformly distributed samples is √3 times their RMS.
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

func power(f []int16) float64 {
	var sum int64
	for _, v := range f {
		sum += int64(v) * int64(v)
	}
	return float64(sum) / float64(max(1, len(f)))
}
