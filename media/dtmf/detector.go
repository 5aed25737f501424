package dtmf

import (
	"math"
	"time"
)

// Detection thresholds (ITU-T Q.24, and stricter to reject speech).
const (
	window       = 20 * time.Millisecond
	hop          = 10 * time.Millisecond
	hits         = 3    // equal windows that make a digit: 40 ms
	misses       = 2    // windows without it that end it
	minPower     = 1e-4 // lowest power of a tone: -40 dB of a full-scale sine
	minShare     = 0.55 // least share of the total power in the two tones
	apart        = 5    // least ratio of a tone to the others of its group
	twist        = 6.3  // greatest ratio of low to high tone: 8 dB
	reverseTwist = 4.0  // greatest ratio of high to low tone: 6 dB
	none         = -1
)

// A Detector detects in-band DTMF. It belongs to one goroutine and allocates
// nothing after NewDetector.
type Detector struct {
	tones  [8]float64 // Goertzel coefficients, rows first
	window []int16
	hop    int
	filled int

	last   int // code of the last window, or none
	run    int // equal windows in a row
	down   int // code of the pressed digit, or none
	absent int // windows since it was last present
}

// NewDetector returns a Detector for audio at rate (Hz).
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

// Delay is the greatest time from the beginning of a tone to its detection.
const Delay = window + (hits-1)*hop

// Detect takes the next audio, at most 20 ms, and returns a digit whose press
// was detected in it. A held digit counts once.
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

// MarkGap marks missing audio. A held digit stays pressed.
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
	var power [8]float64 // as a share of the total
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

// strongest returns the tone that stands out in a group, if one does.
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
