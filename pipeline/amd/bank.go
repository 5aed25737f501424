package amd

import (
	"math"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Signal is what a tone is.
type Signal uint8

// Signals.
const (
	NoSignal Signal = iota
	Beep            // of a machine that records from its end on
	Calling         // a fax calls: 1100 Hz for half a second (ITU-T T.30 section 4.3.3.4)
	Called          // a fax or modem answers: 2100 Hz (ITU-T T.30 section 4.3.3.1)
	Special         // special information tones: the number cannot be reached (ITU-T E.180 section 5.5)
	Engaged         // busy or reorder: 480 and 620 Hz, in bursts
)

// String names a signal as evidence does.
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
	case Engaged:
		return "busy_tone"
	default:
		return "none"
	}
}

const (
	audible  = -45.0 // dBFS under which there is no tone
	share    = 0.8   // of a frame's power that a tone must hold
	steady   = 0.02  // by which its frequency may wander
	lowest   = 350.0 // Hz of a beep
	highest  = 2300.0
	briefest = 6  // frames of a beep: 120 ms
	longest  = 75 // 1500 ms
	after    = 2  // frames of silence that end a beep
	drop     = 15 // dB that the level must fall by to be silence
	certain  = 30 // frames of 2100 Hz that tell at once: 600 ms
)

// A Bank hears tones in one stream. Its zero value is ready. It belongs to one
// goroutine and allocates nothing.
type Bank struct {
	freq   float64 // Hz of the tone that is on, its mean
	level  float64 // dBFS of it
	frames int     // that it lasted
	quiet  int     // frames of silence since
	told   bool
	gap    bool // a frame of it was torn
	sit    int  // tones of three that came in their order
	bursts int  // of busy tone
	dual   int  // frames of the burst that is on
}

// Frame takes the next frame, of 160 or 320 samples, and returns the signal it
// completes. back is how long ago the signal ended, counted to the end of this
// frame; 0 where it is still on.
func (b *Bank) Frame(f media.Frame) (s Signal, back time.Duration) {
	rate := float64(len(f) * 50)
	level, freq := estimate(f, rate)
	tonal := level > audible && freq > 0 && part(f, rate, freq) > share
	b.burst(engaged(f, rate, level, tonal))
	switch {
	case b.bursts >= 2:
		b.bursts = 0
		return Engaged, 0
	case tonal && b.goesOn(freq):
		b.frames, b.gap = b.frames+1, false
		b.freq += (freq - b.freq) / float64(b.frames)
		b.level = level
		return b.lasting()
	case !tonal && b.frames > 0 && level < b.level-drop:
		return b.silence()
	case !tonal && b.frames > 0 && !b.gap && b.quiet == 0:
		b.gap = true // the frame in which it ends
		return NoSignal, 0
	default:
		b.followed()
		b.restart(freq, level, tonal)
		return NoSignal, 0
	}
}

// silence takes a frame of silence after a tone.
func (b *Bank) silence() (s Signal, back time.Duration) {
	if b.quiet++; b.quiet < after {
		return NoSignal, 0
	}
	s = b.ended()
	b.restart(0, 0, false)
	return s, after * media.FrameTime
}

// goesOn tells whether freq is the tone that is on.
func (b *Bank) goesOn(freq float64) bool {
	return b.frames > 0 && b.quiet == 0 && near(freq, b.freq, steady*b.freq)
}

// burst counts bursts of busy tone, of 200 to 600 ms.
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
	b.freq, b.level, b.frames, b.quiet, b.told, b.gap = freq, level, 0, 0, false, false
	if tonal {
		b.frames = 1
	}
}

// lasting tells what is told before it ends.
func (b *Bank) lasting() (Signal, time.Duration) {
	switch {
	case b.told:
		return NoSignal, 0
	case near(b.freq, 2100, 20) && b.frames >= certain:
		b.told = true
		return Called, 0
	case b.sit == 2 && near(b.freq, 1777, 30) && b.frames >= 8:
		b.told, b.sit = true, 0
		return Special, 0
	default:
		return NoSignal, 0
	}
}

// followed takes a tone that another sound follows without a pause: perhaps one
// of the first two of the three special information tones.
func (b *Bank) followed() {
	long := b.frames >= 8 && b.frames <= 22
	switch {
	case long && near(b.freq, 950, 50):
		b.sit = 1
	case long && near(b.freq, 1400, 45) && b.sit == 1:
		b.sit = 2
	case b.frames > 3:
		b.sit = 0
	}
}

// ended tells what a tone was that silence follows.
func (b *Bank) ended() Signal {
	b.sit = 0
	switch {
	case b.told:
		return NoSignal
	case near(b.freq, 1100, 38) && b.frames >= 20 && b.frames <= 30:
		return Calling
	case b.frames >= briefest && b.frames <= longest && b.freq >= lowest && b.freq <= highest:
		return Beep
	default:
		return NoSignal
	}
}

func near(f, want, by float64) bool { return math.Abs(f-want) <= by }

// estimate returns the level of f in dBFS, and the frequency in Hz of the sine
// that foretells it best from two samples each, 0 where none does. A sine obeys
// x[n] + x[n-2] = 2 cos(w) x[n-1] (V. Pisarenko, 1973).
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

// part is the share of the power of f that a sine of freq (Hz) holds, by
// Goertzel's algorithm.
func part(f media.Frame, rate, freq float64) float64 {
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

// engaged tells whether both tones of busy are on, and nothing else.
func engaged(f media.Frame, rate, level float64, tonal bool) bool {
	if tonal || level <= audible {
		return false
	}
	a, b := part(f, rate, 480), part(f, rate, 620)
	return a > 0.2 && b > 0.2 && a+b > share
}
