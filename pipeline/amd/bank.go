package amd

import (
	"math"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Signal is the meaning of a tone.
type Signal uint8

// Signals.
const (
	NoSignal Signal = iota
	Beep            // recording beep of an answering machine
	Calling         // CNG tone of a fax: 1100 Hz for 0.5 s (ITU-T T.30 section 4.3.3.4)
	Called          // CED tone of a fax or modem: 2100 Hz (ITU-T T.30 section 4.3.3.1)
	Special         // special information tones: the number cannot be reached (ITU-T E.180 section 5.5)
	Busy            // busy or reorder: 480 and 620 Hz, in bursts
)

// String returns the name used as evidence.
func (s Signal) String() string {
	switch s {
	case Beep:
		return "beep"
	case Calling:
		return "fax_calling"
	case Called:
		return "fax_answer"
	case Special:
		return "special_information"
	case Busy:
		return "busy_tone"
	default:
		return "none"
	}
}

const (
	audible       = -45.0 // dBFS; quieter input has no tone
	minShare      = 0.8   // minimum share of a tone in the power of a frame
	maxDrift      = 0.02  // largest relative change of frequency within a tone
	minBeepFreq   = 350.0 // lowest frequency of a beep in Hz
	maxBeepFreq   = 2300.0
	minBeep       = 6  // shortest beep in frames: 120 ms
	maxBeep       = 75 // longest beep in frames: 1500 ms
	endSilence    = 2  // frames of silence that end a tone
	minDrop       = 15 // minimum drop of the level in dB that counts as silence
	minAnswerTone = 30 // minimum number of frames of 2100 Hz: 600 ms
)

// A Bank detects tones in one stream. The zero value is ready to use. It is for one
// goroutine and allocates nothing.
type Bank struct {
	freq     float64 // mean frequency of the current tone
	level    float64 // dBFS of the current tone
	frames   int     // duration of the tone
	quiet    int     // frames of silence after the tone
	reported bool
	gap      bool // the previous frame of the tone was disturbed
	sit      int  // number of special information tones received in order, of three
	bursts   int  // number of bursts of busy tone
	dual     int  // number of frames of the current burst of busy tone
}

// Frame takes the next frame of 160 or 320 samples and returns the signal that it
// completes. back is the time since the end of the signal, 0 if it continues.
func (b *Bank) Frame(f media.Frame) (s Signal, back time.Duration) {
	rate := float64(len(f) * 50)
	level, freq := estimate(f, rate)
	tonal := level > audible && freq > 0 && powerShare(f, rate, freq) > minShare
	b.burst(isBusy(f, rate, level, tonal))
	switch {
	case b.bursts >= 2:
		b.bursts = 0
		return Busy, 0
	case tonal && b.continues(freq):
		b.frames, b.gap = b.frames+1, false
		b.freq += (freq - b.freq) / float64(b.frames)
		b.level = level
		return b.onTone()
	case !tonal && b.frames > 0 && level < b.level-minDrop:
		return b.silence()
	case !tonal && b.frames > 0 && !b.gap && b.quiet == 0:
		b.gap = true // the tone ends in this frame
		return NoSignal, 0
	default:
		b.onNextSound()
		b.restart(freq, level, tonal)
		return NoSignal, 0
	}
}

// silence processes a frame of silence after a tone.
func (b *Bank) silence() (s Signal, back time.Duration) {
	if b.quiet++; b.quiet < endSilence {
		return NoSignal, 0
	}
	s = b.onEnd()
	b.restart(0, 0, false)
	return s, endSilence * media.FrameTime
}

// continues reports whether freq belongs to the current tone.
func (b *Bank) continues(freq float64) bool {
	return b.frames > 0 && b.quiet == 0 && isNear(freq, b.freq, maxDrift*b.freq)
}

// burst counts bursts of busy tone of 200 to 600 ms.
func (b *Bank) burst(on bool) {
	if on {
		b.dual++
		return
	}
	if b.dual >= 10 && b.dual <= 30 {
		b.bursts++
	}
	b.dual = 0
}

func (b *Bank) restart(freq, level float64, tonal bool) {
	b.freq, b.level, b.frames, b.quiet, b.reported, b.gap = freq, level, 0, 0, false, false
	if tonal {
		b.frames = 1
	}
}

// onTone returns the signals that are known before the tone ends.
func (b *Bank) onTone() (Signal, time.Duration) {
	switch {
	case b.reported:
		return NoSignal, 0
	case isNear(b.freq, 2100, 20) && b.frames >= minAnswerTone:
		b.reported = true
		return Called, 0
	case b.sit == 2 && isNear(b.freq, 1777, 30) && b.frames >= 8:
		b.reported, b.sit = true, 0
		return Special, 0
	default:
		return NoSignal, 0
	}
}

// onNextSound processes a tone followed by another sound without a pause: possibly one of
// the first two of the three special information tones.
func (b *Bank) onNextSound() {
	long := b.frames >= 8 && b.frames <= 22
	switch {
	case long && isNear(b.freq, 950, 50):
		b.sit = 1
	case long && isNear(b.freq, 1400, 45) && b.sit == 1:
		b.sit = 2
	case b.frames > 3:
		b.sit = 0
	}
}

// onEnd returns the signal of a tone followed by silence.
func (b *Bank) onEnd() Signal {
	b.sit = 0
	switch {
	case b.reported:
		return NoSignal
	case isNear(b.freq, 1100, 38) && b.frames >= 20 && b.frames <= 30:
		return Calling
	case b.frames >= minBeep && b.frames <= maxBeep && b.freq >= minBeepFreq && b.freq <= maxBeepFreq:
		return Beep
	default:
		return NoSignal
	}
}

func isNear(f, want, by float64) bool { return math.Abs(f-want) <= by }

// estimate returns the level of f in dBFS and the frequency in Hz of the sine that fits f best; 0 if none fits. A
// sine satisfies x[n] + x[n-2] = 2 cos(w) x[n-1] (V. Pisarenko, 1973).
func estimate(f media.Frame, rate float64) (level, freq float64) {
	var power, both, own float64
	for i, v := range f {
		x := float64(v)
		power += x * x
		if i >= 2 {
			m := float64(f[i-1])
			both += m * (x + float64(f[i-2]))
			own += m * m
		}
	}
	if power == 0 || own == 0 {
		return -120, 0
	}
	level = 10 * math.Log10(power/float64(len(f))/(32768*32768))
	c := both / own / 2
	if c <= -1 || c >= 1 {
		return level, 0
	}
	return level, math.Acos(c) / (2 * math.Pi) * rate
}

// powerShare returns the share of the power of f at freq (Hz), by Goertzel's algorithm.
func powerShare(f media.Frame, rate, freq float64) float64 {
	coeff := 2 * math.Cos(2*math.Pi*freq/rate)
	var s1, s2, power float64
	for _, v := range f {
		x := float64(v)
		s1, s2 = x+coeff*s1-s2, s1
		power += x * x
	}
	if power == 0 {
		return 0
	}
	return 2 * (s1*s1 + s2*s2 - coeff*s1*s2) / (float64(len(f)) * power)
}

// isBusy reports whether both busy tones, and nothing else, are present.
func isBusy(f media.Frame, rate, level float64, tonal bool) bool {
	if tonal || level <= audible {
		return false
	}
	a, b := powerShare(f, rate, 480), powerShare(f, rate, 620)
	return a > 0.2 && b > 0.2 && a+b > minShare
}
