package dtmf

import (
	"math"
	"time"
)

// Thresholds for detection. They follow ITU-T Q.24, but are stricter, so that speech is not taken for digits.
const (
	window       = 20 * time.Millisecond
	hop          = 10 * time.Millisecond
	hits         = 3    // windows in a row with the same digit that make a press: 40 ms
	misses       = 2    // windows without the digit that end the press
	minPower     = 1e-4 // minimum power of a tone: -40 dB relative to a full-scale sine
	minShare     = 0.55 // minimum share of the two tones in the total power
	apart        = 5    // minimum power ratio of a tone to the other tones of its group
	twist        = 6.3  // maximum power ratio of low to high tone: 8 dB
	reverseTwist = 4.0  // maximum power ratio of high to low tone: 6 dB
	none         = -1
)

// Detector detects DTMF tones in audio. It must be used by one goroutine only. It allocates nothing after
// NewDetector.
type Detector struct {
	tones  [8]float64 // Goertzel coefficients; the row tones come first
	window []int16
	hop    int
	filled int

	last   int // code of the last window, or none
	run    int // number of windows in a row with the code last
	down   int // code of the digit that is pressed, or none
	absent int // windows since the pressed digit was last present
}

// NewDetector returns a Detector for audio with a sample rate in Hz.
func NewDetector(rate int) *Detector {
	d := &Detector{last: none, down: none}
	for i := range 4 {
		d.tones[i] = 2 * math.Cos(2*math.Pi*rows[i]/float64(rate))
		d.tones[4+i] = 2 * math.Cos(2*math.Pi*columns[i]/float64(rate))
	}
	d.window = make([]int16, int(window*time.Duration(rate)/time.Second))
	d.hop = int(hop * time.Duration(rate) / time.Second)
	return d
}

// Delay is the maximum time from the beginning of a tone to its detection.
const Delay = window + (hits-1)*hop

// Detect processes the next audio, at most 20 ms. If it detects a new press, it returns the digit. A digit that is
// held down counts once.
func (d *Detector) Detect(pcm []int16) (key rune, pressed bool) {
	for len(pcm) > 0 {
		n := copy(d.window[d.filled:], pcm)
		pcm = pcm[n:]
		if d.filled += n; d.filled < len(d.window) {
			break
		}
		if k, ok := d.step(d.classify()); ok {
			key, pressed = k, true
		}
		d.filled = copy(d.window, d.window[d.hop:])
	}
	return key, pressed
}

// MarkGap says that audio is missing here. A digit that is held down remains pressed.
func (d *Detector) MarkGap() { d.filled = 0 }

func (d *Detector) step(code int) (rune, bool) {
	if code == d.last {
		d.run++
	} else {
		d.last, d.run = code, 1
	}
	if code == d.down {
		d.absent = 0
	} else if d.absent++; d.absent >= misses {
		d.down = none
	}
	if code == none || code == d.down || d.run < hits {
		return 0, false
	}
	d.down, d.absent = code, 0
	return Key(uint8(code)) //nolint:gosec // one of sixteen
}

// classify returns the code of the digit in the window, or none.
func (d *Detector) classify() int {
	var all float64
	for _, x := range d.window {
		v := float64(x)
		all += v * v
	}
	n := float64(len(d.window))
	if all < 2*minPower*n/2*math.MaxInt16*math.MaxInt16 {
		return none
	}
	var power [8]float64 // power of each tone, as a share of the total
	for i, c := range d.tones {
		var s1, s2 float64
		for _, x := range d.window {
			s1, s2 = float64(x)+c*s1-s2, s1
		}
		power[i] = 2 * (s1*s1 + s2*s2 - c*s1*s2) / (n * all)
	}
	row, low, ok := strongest(power[:4])
	column, high, ok2 := strongest(power[4:])
	if !ok || !ok2 || low+high < minShare || low > twist*high || high > reverseTwist*low {
		return none
	}
	code, _ := Code(rune(pad[row][column]))
	return int(code)
}

// strongest returns the strongest tone of a group. ok is false if no tone stands out.
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
