package tone

import (
	"math"
	"time"
)

const (
	hop       = 5 * time.Millisecond
	quiet     = -38.0 // noise estimate at the start, in dBFS
	above     = 9.0   // dB by which speech is louder than the noise
	rise      = 0.03  // dB by which the noise estimate may rise in one hop
	loudest   = -28.0 // maximum of the noise estimate, in dBFS
	closing   = 5     // number of quiet hops that end a word
	longest   = 3 * time.Second
	confident = 0.5 // minimum share of a slot's power that its two tones must have
)

// Decoder decodes words from a stream of audio. Create it with NewDecoder. It must be used by one goroutine only.
type Decoder struct {
	rate      int
	rest      []int16 // audio that does not fill a hop yet
	word      []int16 // audio of the word that is being received
	quietHops int     // number of quiet hops at the end of word
	at        int     // number of samples before rest
	noise     float64 // noise estimate in dBFS, at most loudest
}

// NewDecoder returns a Decoder for a stream with a sample rate in Hz.
func NewDecoder(rate int) *Decoder { return &Decoder{rate: rate, noise: quiet - above} }

// Decode processes the next audio. It returns the words that ended in it, and ignores other sounds.
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
			d.word = d.word[:0] // the sound is too long for a word
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

// read returns the word in pcm and its offset. sound is the number of samples before the silence at the end. The exact
// beginning of the word is unknown, so read looks for the mark at each millisecond around offset 0.
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
			sym = mark // the symbol was damaged on its way
		}
		if sym == shift && !shifted {
			shifted = true
			continue
		}
		text, shifted = append(text, letter(sym, shifted)), false
	}
	return string(text), max(from, 0)
}

// letter returns the character of a symbol, or '~' if there is none.
func letter(sym int, shifted bool) rune {
	if all := cyrillic(); shifted && sym > mark && sym <= len(all) {
		return all[sym-1]
	}
	if shifted || sym == mark || sym >= len(alphabet) {
		return '~'
	}
	return rune(alphabet[sym])
}

// slot returns the symbol at the offset off, and the share of the power that its tones have.
func (d *Decoder) slot(pcm []int16, off int) (int, float64) {
	n := samples(d.rate, slot)
	from, to := max(0, off+n/6), min(len(pcm), off+n-n/6)
	if to-from < n/2 {
		return -1, 0
	}
	mid := pcm[from:to]
	low, lowPower := strongest(mid, d.rate, lowest, lowStep)
	high, highPower := strongest(mid, d.rate, highest, hiStep)
	total := 2 * math.Pow(10, Level(mid)/10) // power of a sine: its amplitude squared
	return high*8 + low, (lowPower + highPower) / total
}

// strongest returns the strongest of eight tones and its power. It computes the eight tones in one loop instead of
// calling Power for each: the steps of a tone depend on each other, but the CPU can overlap those of different tones.
func strongest(pcm []int16, rate int, from, step float64) (int, float64) {
	var coeff, s1, s2 [8]float64
	for i := range coeff {
		coeff[i] = 2 * math.Cos(2*math.Pi*(from+step*float64(i))/float64(rate))
	}
	for _, x := range pcm {
		v := float64(x) / 32768
		for i := range coeff {
			s1[i], s2[i] = v+coeff[i]*s1[i]-s2[i], s1[i]
		}
	}
	best, power, n := 0, 0.0, float64(len(pcm))/2
	for i := range coeff {
		if p := (s1[i]*s1[i] + s2[i]*s2[i] - coeff[i]*s1[i]*s2[i]) / (n * n); p > power {
			best, power = i, p
		}
	}
	return best, power
}
