package vad

import (
	"math"

	"github.com/parley-voice/parley/media"
)

// Parameters of the search for the end of a voice.
const (
	historyFrames  = 40   // number of frames that are kept
	maxHold        = 10   // frames by which the detector may report the end of a voice late
	loudWindow     = 20   // frames before the reported end that contain the loudest part of the voice
	maxFade        = 30.0 // dB below its maximum down to which the voice counts as present
	cutDrop        = 6.0  // a voice that ends at most this many dB below its maximum was cut off, and did not fade
	cutHalves      = 2    // half frames within which a voice that was cut off falls silent
	minContrast    = 8.0  // minimum dB of a voice above the loudest noise; a weaker voice cannot be told from noise
	noiseMargin    = 2.0  // minimum dB of a voiced sound above the loudest noise
	noiseTolerance = 2.0  // dB above the mean noise within which later sound is only noise
	blendDrop      = 6.0  // dB below the previous sound to which concealment has faded when it overlaps a frame
	maxLost        = 5    // maximum number of successive concealed frames that count as lost; more mean that the caller is silent
)

// preEmphasis is the coefficient of the high-pass filter: noise is loudest and least
// stationary at low frequencies.
const preEmphasis = 0.95

// A halfFrame is 10 ms of audio.
type halfFrame struct {
	level     float64 // level of the treble, dBFS
	concealed bool    // the half frame is concealment
	mixed     bool    // concealment overlaps the half frame
}

// A LevelHistory keeps the levels of recent frames to find the end of a voice more precisely
// than the detector, which reports it late in noise and during concealment. The zero value is
// ready to use. It is for one goroutine and allocates nothing.
type LevelHistory struct {
	halves    [2 * historyFrames]halfFrame
	frames    int
	concealed bool // concealment in the last frame
}

// Frame takes the next frame; an empty frame means silence. made means that the frame is concealment of a lost frame.
func (t *LevelHistory) Frame(f media.Frame, made bool) {
	at := 2 * (t.frames % historyFrames)
	t.halves[at] = halfFrame{trebleLevel(f[:len(f)/2]), made, t.concealed && !made}
	t.halves[at+1] = halfFrame{trebleLevel(f[len(f)/2:]), made, false}
	t.concealed = made
	t.frames++
}

// LastVoiced returns how many frames ago the voice was certainly present for the last time. back is how many frames
// ago the voice ended according to the detector. lost is the number of lost frames after last, which may also contain
// the voice. For a voice that faded into noise, last is back.
func (t *LevelHistory) LastVoiced(back int) (last, lost int) {
	back = max(0, min(back, t.known()-1))
	from := (back + 1) / 2 * 2 // later audio is only noise
	noise, loudest := t.loudest(0, from), t.loudest(2*back, 2*(back+loudWindow))
	if loudest < noise+minContrast {
		return back, 0
	}
	least := max(noise+noiseMargin, loudest-maxFade)
	h, ok := t.findVoiced(from, back, (least+loudest)/2)
	for ok && h > 0 && t.isLoud(h-1, least) {
		h--
	}
	if !ok || h/2 > back && !t.isConcealed(back) && !t.brokeOff(h, back, max(loudest-cutDrop, noise+minContrast)) {
		return back, 0
	}
	return h / 2, t.lostAfter(h)
}

// brokeOff reports whether the voice, last found in half h, was loud to its end, and only noise followed until the
// end that the detector reported.
func (t *LevelHistory) brokeOff(h, back int, loud float64) bool {
	return t.loudest(h, h+cutHalves+1) >= loud && t.mean(2*back, h) <= t.mean(0, (back+1)/2*2)+noiseTolerance
}

// isConcealed reports whether a frame contains concealment.
func (t *LevelHistory) isConcealed(back int) bool {
	x := t.half(2*back + 1)
	return x.concealed || x.mixed
}

// findVoiced returns the latest half louder than least, searching from h = from back to
// the detector's maximum lag.
func (t *LevelHistory) findVoiced(from, back int, least float64) (h int, ok bool) {
	made := 0
	for h = from; h < 2*(back+maxHold+made) && h+1 < 2*t.known(); h++ {
		if t.half(h).concealed {
			made += h % 2
		} else if t.isLoud(h, least) {
			return h, true
		}
	}
	return 0, false
}

// known returns the number of kept frames.
func (t *LevelHistory) known() int { return min(t.frames, historyFrames) }

// half returns the half frame h halves ago; 0 is the newest.
func (t *LevelHistory) half(h int) halfFrame { return t.halves[(2*t.frames-1-h)%len(t.halves)] }

// loudest returns the level of the loudest received half in a range; -Inf if none.
func (t *LevelHistory) loudest(from, to int) float64 {
	most := math.Inf(-1)
	for h := from; h < min(to, 2*t.known()); h++ {
		if x := t.half(h); !x.concealed && !x.mixed {
			most = max(most, x.level)
		}
	}
	return most
}

// mean returns the mean power of the received halves in a range, in dBFS.
func (t *LevelHistory) mean(from, to int) float64 {
	sum, n := 0.0, 0.0
	for h := from; h < min(to, 2*t.known()); h++ {
		if x := t.half(h); !x.concealed && !x.mixed {
			sum, n = sum+math.Pow(10, x.level/10), n+1
		}
	}
	return 10 * math.Log10(sum/max(n, 1))
}

// isLoud reports whether a received half is louder than least and louder than the remains of
// earlier concealment.
func (t *LevelHistory) isLoud(h int, least float64) bool {
	x := t.half(h)
	if x.mixed {
		before := h + 1
		for before < 2*t.known()-1 && t.half(before).concealed {
			before++
		}
		least = max(least, t.half(before).level-blendDrop)
	}
	return !x.concealed && x.level > least
}

// lostAfter returns the number of frames lost right after half h; 0 if they are more than maxLost.
func (t *LevelHistory) lostAfter(h int) int {
	n := 0
	for h%2 == 0 && n <= maxLost && h >= 2*(n+1) && t.half(h-2*(n+1)).concealed {
		n++
	}
	if n > maxLost {
		return 0
	}
	return n
}

// trebleLevel returns the level of f in dBFS after pre-emphasis.
func trebleLevel(f media.Frame) float64 {
	var sum float64
	for i := 1; i < len(f); i++ {
		x := float64(f[i]) - preEmphasis*float64(f[i-1])
		sum += x * x
	}
	return decibels(sum, len(f))
}
