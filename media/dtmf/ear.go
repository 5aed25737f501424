package dtmf

import (
	"math"
	"time"
)

// What is taken for a key (ITU-T Q.24, and tighter where speech would pass).
const (
	window   = 20 * time.Millisecond
	hop      = 10 * time.Millisecond
	hits     = 3    // windows alike that are a key: 40 ms
	misses   = 2    // windows without it that end it
	faintest = 1e-4 // power of a tone, of a full-scale sine's: -40 dB
	purity   = 0.55 // share of all power that the two tones hold
	apart    = 5    // times that a tone is above the others of its group
	twist    = 6.3  // times that the low tone may be above the high, 8 dB
	untwist  = 4.0  // times that the high tone may be above the low, 6 dB
	none     = -1
)

// An Ear hears keys in sound. It belongs to one goroutine and allocates
// nothing once it is made.
type Ear struct {
	tones  [8]float64 // Goertzel coefficients, the rows first
	window []int16
	hop    int
	filled int

	last int // code of the last window, or none
	run  int // windows alike
	held int // code of the key that is down, or none
	gone int // windows since it was last heard
}

// NewEar returns an Ear for sound at rate (Hz).
func NewEar(rate int) *Ear {
	e := &Ear{last: none, held: none}
	for i := range 4 {
		e.tones[i] = 2 * math.Cos(2*math.Pi*rows[i]/float64(rate))
		e.tones[4+i] = 2 * math.Cos(2*math.Pi*columns[i]/float64(rate))
	}
	e.window = make([]int16, int(window*time.Duration(rate)/time.Second))
	e.hop = int(hop * time.Duration(rate) / time.Second)
	return e
}

// Delay is how long after its beginning a key is heard, or a little less.
const Delay = window + (hits-1)*hop

// Hear takes the next 20 ms or less of the sound, and returns a key where one
// was found to be pressed in it. A key that is held counts once.
func (e *Ear) Hear(pcm []int16) (key rune, pressed bool) {
	for len(pcm) > 0 {
		n := copy(e.window[e.filled:], pcm)
		pcm = pcm[n:]
		if e.filled += n; e.filled < len(e.window) {
			break
		}
		if k, ok := e.step(e.look()); ok {
			key, pressed = k, true
		}
		e.filled = copy(e.window, e.window[e.hop:])
	}
	return key, pressed
}

// Miss says that sound is missing here. A key that is held stays so.
func (e *Ear) Miss() { e.filled = 0 }

// step takes what one window holds.
func (e *Ear) step(code int) (rune, bool) {
	if code == e.last {
		e.run++
	} else {
		e.last, e.run = code, 1
	}
	if code == e.held {
		e.gone = 0
	} else if e.gone++; e.gone >= misses {
		e.held = none
	}
	if code == none || code == e.held || e.run < hits {
		return 0, false
	}
	e.held, e.gone = code, 0
	return Key(uint8(code)) //nolint:gosec // one of sixteen
}

// look returns the code of the key that the window holds, or none.
func (e *Ear) look() int {
	var all float64
	for _, x := range e.window {
		v := float64(x)
		all += v * v
	}
	n := float64(len(e.window))
	if all < 2*faintest*n/2*math.MaxInt16*math.MaxInt16 {
		return none
	}
	var power [8]float64 // as a share of all
	for i, c := range e.tones {
		var s1, s2 float64
		for _, x := range e.window {
			s1, s2 = float64(x)+c*s1-s2, s1
		}
		power[i] = 2 * (s1*s1 + s2*s2 - c*s1*s2) / (n * all)
	}
	row, low, ok := strongest(power[:4])
	column, high, ok2 := strongest(power[4:])
	if !ok || !ok2 || low+high < purity || low > twist*high || high > untwist*low {
		return none
	}
	code, _ := Code(rune(pad[row][column]))
	return int(code)
}

// strongest returns the tone that stands out in a group, where one does.
func strongest(power []float64) (at int, most float64, ok bool) {
	var second float64
	for i, p := range power {
		switch {
		case p > most:
			second, most, at = most, p, i
		case p > second:
			second = p
		}
	}
	return at, most, most > apart*second
}
