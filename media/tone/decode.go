package tone

import (
	"math"
	"time"
)

const (
	hop       = 5 * time.Millisecond
	quiet     = -38.0 // dBFS of silence on a quiet line
	above     = 9.0   // dB that speech exceeds the noise by
	rise      = 0.03  // dB per hop that the noise estimate may rise
	loudest   = -28.0 // dBFS, upper limit of the noise estimate
	closing   = 5     // quiet hops that end a word
	longest   = 3 * time.Second
	confident = 0.5 // least share of a slot's power in its two tones
)

// A Decoder decodes words from a stream of audio. Create it with NewDecoder.
// It belongs to one goroutine.
type Decoder struct {
	rate      int
	rest      []int16 // less than a hop
	word      []int16 // audio of the current word
	quietHops int     // quiet hops at the end of word
	at        int     // samples before rest
	noise     float64 // estimate in dBFS, at most loudest
}

// NewDecoder returns a Decoder for a stream at rate (Hz).
func NewDecoder(rate int) *Decoder { return &Decoder{rate: rate, noise: quiet - above} }

// Decode takes the next audio and returns the words that ended in it. Other
// sounds are ignored.
func (d *Decoder) Decode(pcm []int16) []Word {
	var words []Word
	n := samples(d.rate, hop)
	d.rest = append(d.rest, pcm...)
	done := 0
	for ; len(d.rest)-done >= n; done += n {
		if w, ok := d.step(d.rest[done : done+n]); ok {
			words = append(words, w)
		}
		d.at += n
	}
	d.rest = d.rest[:copy(d.rest, d.rest[done:])]
	return words
}

func (d *Decoder) step(pcm []int16) (Word, bool) {
	level := Level(pcm)
	d.noise = max(quiet-above, min(level, d.noise+rise, loudest))
	silent := level < d.noise+above
	if len(d.word) == 0 && silent {
		return Word{}, false
	}
	d.word = append(d.word, pcm...)
	if !silent {
		d.quietHops = 0
		if len(d.word) > samples(d.rate, longest) {
			d.word = d.word[:0] // too long for a word
		}
		return Word{}, false
	}
	if d.quietHops++; d.quietHops < closing {
		return Word{}, false
	}
	sound := len(d.word) - d.quietHops*len(pcm)
	text, from := d.read(d.word, sound)
	begin := d.at + len(pcm) - len(d.word) + from
	w := Word{text, length(d.rate, begin), length(d.rate, begin+sound)}
	d.word, d.quietHops = d.word[:0], 0
	return w, text != ""
}

// read returns the word in pcm and its offset; sound samples are not silent.
// The onset is known only to a hop, so every millisecond around it is tried
// for the mark.
func (d *Decoder) read(pcm []int16, sound int) (string, int) {
	n := samples(d.rate, slot)
	best, from := confident, -1
	for off := -d.rate / 200; off <= d.rate/100; off += d.rate / 1000 {
		if sym, share := d.slot(pcm, off); sym == mark && share > best {
			best, from = share, off
		}
	}
	if from == -1 && best == confident {
		return "", 0
	}
	var text []rune
	shifted := false
	slots := int(math.Round(float64(sound-max(from, 0)) / float64(n)))
	for i := 1; i < slots; i++ {
		sym, share := d.slot(pcm, from+i*n)
		if share < confident {
			sym = mark // damaged in transit
		}
		if sym == shift && !shifted {
			shifted = true
			continue
		}
		text, shifted = append(text, letter(sym, shifted)), false
	}
	return string(text), max(from, 0)
}

// letter returns the character of a symbol; '~' if there is none.
func letter(sym int, shifted bool) rune {
	if all := cyrillic(); shifted && sym > mark && sym <= len(all) {
		return all[sym-1]
	}
	if shifted || sym == mark || sym >= len(alphabet) {
		return '~'
	}
	return rune(alphabet[sym])
}

// slot returns the symbol at off and its share of the power.
func (d *Decoder) slot(pcm []int16, off int) (int, float64) {
	n := samples(d.rate, slot)
	from, to := max(0, off+n/6), min(len(pcm), off+n-n/6)
	if to-from < n/2 {
		return -1, 0
	}
	mid := pcm[from:to]
	low, lowPower := strongest(mid, d.rate, lowest, lowStep)
	high, highPower := strongest(mid, d.rate, highest, hiStep)
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
