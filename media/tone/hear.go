package tone

import (
	"math"
	"time"
)

const (
	hop       = 5 * time.Millisecond
	quiet     = -38.0 // dBFS under which a hop is silence, unless the line is noisy
	above     = 9.0   // dB above the noise that a hop of a word is at least
	rise      = 0.03  // dB a hop by which the noise is taken to have grown
	loudest   = -28.0 // dBFS of noise that words are told from
	closing   = 5     // quiet hops that end a word
	longest   = 3 * time.Second
	confident = 0.5 // share of a slot's power that its two tones must hold
)

// A Hearer reads words out of a stream of sound. Its zero value is not ready;
// use NewHearer. It belongs to one goroutine.
type Hearer struct {
	rate  int
	rest  []int16 // less than a hop, waiting for more
	word  []int16 // the sound of the word that is being said
	still int     // quiet hops at the end of word
	at    int     // samples before rest
	noise float64 // of the line, dBFS, at most loudest
}

// NewHearer returns a Hearer of a stream at rate (Hz).
func NewHearer(rate int) *Hearer { return &Hearer{rate: rate, noise: quiet - above} }

// Hear takes the next stretch of the stream and returns the words that ended
// in it. Sound that is no word is passed over.
func (h *Hearer) Hear(pcm []int16) []Word {
	var words []Word
	n := samples(h.rate, hop)
	h.rest = append(h.rest, pcm...)
	taken := 0
	for ; len(h.rest)-taken >= n; taken += n {
		if w, ok := h.step(h.rest[taken : taken+n]); ok {
			words = append(words, w)
		}
		h.at += n
	}
	h.rest = h.rest[:copy(h.rest, h.rest[taken:])]
	return words
}

func (h *Hearer) step(pcm []int16) (Word, bool) {
	level := Level(pcm)
	h.noise = max(quiet-above, min(level, h.noise+rise, loudest))
	silent := level < h.noise+above
	if len(h.word) == 0 && silent {
		return Word{}, false
	}
	h.word = append(h.word, pcm...)
	if !silent {
		h.still = 0
		if len(h.word) > samples(h.rate, longest) {
			h.word = h.word[:0] // a drone, not a word
		}
		return Word{}, false
	}
	if h.still++; h.still < closing {
		return Word{}, false
	}
	sound := len(h.word) - h.still*len(pcm)
	text, from := h.read(h.word, sound)
	begin := h.at + len(pcm) - len(h.word) + from
	w := Word{text, length(h.rate, begin), length(h.rate, begin+sound)}
	h.word, h.still = h.word[:0], 0
	return w, text != ""
}

// read returns the word that stands in pcm, of which sound samples are not
// silent, and where it begins. The onset is known to a hop only, so every
// millisecond around it is tried for the mark.
func (h *Hearer) read(pcm []int16, sound int) (string, int) {
	n := samples(h.rate, slot)
	best, from := confident, -1
	for off := -h.rate / 200; off <= h.rate/100; off += h.rate / 1000 {
		if sym, share := h.slot(pcm, off); sym == mark && share > best {
			best, from = share, off
		}
	}
	if from == -1 && best == confident {
		return "", 0
	}
	var text []byte
	slots := int(math.Round(float64(sound-max(from, 0)) / float64(n)))
	for i := 1; i < slots; i++ {
		sym, share := h.slot(pcm, from+i*n)
		if share < confident || sym == mark || sym >= len(alphabet) {
			text = append(text, '~') // damaged on the way
			continue
		}
		text = append(text, alphabet[sym])
	}
	return string(text), max(from, 0)
}

// slot returns the symbol that begins at off and the share of the power there
// that it explains.
func (h *Hearer) slot(pcm []int16, off int) (int, float64) {
	n := samples(h.rate, slot)
	from, to := max(0, off+n/6), min(len(pcm), off+n-n/6)
	if to-from < n/2 {
		return -1, 0
	}
	mid := pcm[from:to]
	low, lowPower := strongest(mid, h.rate, lowest, lowStep)
	high, highPower := strongest(mid, h.rate, highest, hiStep)
	total := 2 * math.Pow(10, Level(mid)/10) // of a sine: amplitude squared
	return high*8 + low, (lowPower + highPower) / total
}

func strongest(pcm []int16, rate int, from, step float64) (int, float64) {
	best, power := 0, 0.0
	for i := range 8 {
		if p := Power(pcm, rate, from+step*float64(i)); p > power {
			best, power = i, p
		}
	}
	return best, power
}
