package dtmf

import (
	"math"
	"time"
)

// Amplitudes of the tones relative to full scale: -9 and -7 dBm0. The high tone is louder, because lines attenuate it
// more.
const (
	lowLoud  = 0.25
	highLoud = 0.31
	ramp     = 2500 * time.Microsecond // fade-in and fade-out that avoid clicks
)

// rows and columns are the frequencies of the tones in Hz (ITU-T Q.23).
//
//nolint:gochecknoglobals // read-only tables
var (
	rows    = [4]float64{697, 770, 852, 941}
	columns = [4]float64{1209, 1336, 1477, 1633}
	pad     = [4]string{"123A", "456B", "789C", "*0#D"}
)

func padPosition(code uint8) (row, column int) {
	for r, line := range pad {
		for c := range line {
			if line[c] == Names[code&15] {
				return r, c
			}
		}
	}
	return 0, 0
}

// Tone fills frame with the audio of a step, at a sample rate in Hz: two tones while the digit is pressed, otherwise
// silence.
func Tone(frame []int16, rate int, s Step) {
	if !s.IsDown() {
		clear(frame)
		return
	}
	row, column := padPosition(s.Code)
	low, high := 2*math.Pi*rows[row]/float64(rate), 2*math.Pi*columns[column]/float64(rate)
	from, total := s.Frame*len(frame), DownFrames*len(frame)
	edge := int(ramp * time.Duration(rate) / time.Second)
	for i := range frame {
		n := from + i
		v := lowLoud*math.Sin(low*float64(n)) + highLoud*math.Sin(high*float64(n))
		if near := min(n, total-1-n); near < edge {
			v *= float64(near) / float64(edge)
		}
		frame[i] = int16(v * math.MaxInt16)
	}
}
