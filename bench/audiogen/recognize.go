package audiogen

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media/tone"
)

// A Sentence is spoken audio with its text.
type Sentence struct {
	Text string
	PCM  []int16 // samples at SentenceRate
}

// SentenceRate is the sample rate of lines in Hz.
const SentenceRate = 8000

// Limits of a Recognizer.
const (
	window    = 10 * time.Millisecond
	loud      = -50.0 // level of a window with speech, in dBFS
	floor     = -60.0 // lower levels count as this one, in dBFS
	shift     = 6     // maximum offset of a line from its detected start, in windows
	first     = 30    // windows of a line before it is compared
	step      = 5     // windows between two comparisons
	similar   = 0.8   // correlation from which a line may be the spoken one
	closeness = 0.05  // lines whose correlation is this much below the best one stay possible
	pause     = 30    // windows after the last sound in which a word may still end
	ended     = 10    // quiet windows after which a line is over, if all its words were returned
	longest   = 6000  // maximum length of a line, in windows
	lost      = 70    // quiet windows after which any line is over
)

// A Recognizer recognizes known sentences in audio, even if a phone connection or another system has changed the audio.
// It replaces a speech-to-text provider in benchmarks with spoken audio.
type Recognizer struct{ lines []known }

// A known is a line to recognize. Levels and ends count from the start of its speech.
type known struct {
	words  []string
	ends   []int        // window in which each word ends
	levels [][2]float64 // level of each window and of its differences, in dBFS
}

// NewRecognizer returns a recognizer of lines. Words within a line get times in proportion to their lengths; the end of
// a line is exact.
func NewRecognizer(lines []Sentence) *Recognizer {
	r := &Recognizer{}
	for _, l := range lines {
		levels := measure(l.PCM, SentenceRate)
		from := slices.IndexFunc(levels, isLoud)
		if from < 0 {
			continue
		}
		to := len(levels)
		for to > from && !isLoud(levels[to-1]) {
			to--
		}
		k := known{words: strings.Fields(l.Text), levels: levels[from:to]}
		letters, sum := 0, len(strings.Join(k.words, ""))
		for _, w := range k.words {
			letters += len(w)
			k.ends = append(k.ends, letters*len(k.levels)/sum)
		}
		r.lines = append(r.lines, k)
	}
	return r
}

func isLoud(level [2]float64) bool { return level[0] >= loud }

// measure returns the levels of each complete window of pcm.
func measure(pcm []int16, rate int) [][2]float64 {
	n := int(window * time.Duration(rate) / time.Second)
	var all [][2]float64
	for ; len(pcm) >= n; pcm = pcm[n:] {
		var power, high float64
		for i, x := range pcm[:n] {
			power += float64(x) * float64(x)
			if i > 0 {
				d := float64(x) - float64(pcm[i-1])
				high += d * d
			}
		}
		all = append(all, [2]float64{decibels(power / float64(n)), decibels(high / float64(n))})
	}
	return all
}

func decibels(power float64) float64 {
	return max(floor, 10*math.Log10(power/(32768*32768)+1e-12))
}

// A SentenceDecoder recognizes the lines of a Recognizer in one stream. One goroutine uses it.
type SentenceDecoder struct {
	of       *Recognizer
	rate     int
	rest     []int16
	at       int          // number of complete windows so far
	spoken   [][2]float64 // levels since the start of the current line; nil between lines
	from     int          // window in which the current line started
	quiet    int          // number of quiet windows at the end
	given    []string     // words of the current line that were returned
	complete bool         // all words of the current line were returned
}

// NewDecoder returns a decoder of a stream with a sample rate in Hz.
func (r *Recognizer) NewDecoder(rate int) *SentenceDecoder {
	return &SentenceDecoder{of: r, rate: rate}
}

// Decode processes the next audio. It returns the words that ended in it, as soon as all lines that may be the spoken
// one agree on them.
func (d *SentenceDecoder) Decode(pcm []int16) []tone.Word {
	d.rest = append(d.rest, pcm...)
	levels := measure(d.rest, d.rate)
	used := len(levels) * int(window*time.Duration(d.rate)/time.Second)
	d.rest = d.rest[:copy(d.rest, d.rest[used:])]
	var words []tone.Word
	for _, l := range levels {
		words = append(words, d.add(l)...)
	}
	return words
}

func (d *SentenceDecoder) add(level [2]float64) []tone.Word {
	d.at++
	if d.spoken == nil {
		if !isLoud(level) {
			return nil
		}
		d.from, d.given = d.at-1, nil
	}
	d.spoken = append(d.spoken, level)
	if d.quiet++; isLoud(level) {
		d.quiet = 0
	}
	if d.quiet >= lost || d.complete && d.quiet >= ended || len(d.spoken) > longest {
		d.spoken, d.quiet, d.complete = nil, 0, false
		return nil
	}
	if d.complete || len(d.spoken) < first || len(d.spoken)%step != 0 {
		return nil
	}
	return d.compare()
}

// compare returns further words of the current line.
func (d *SentenceDecoder) compare() []tone.Word {
	possible := d.possible()
	if len(possible) == 0 {
		return nil
	}
	best := possible[0]
	var words []tone.Word
	for n := len(d.given); n < len(best.words) && best.ends[n] <= len(d.spoken)-d.quiet+pause; n++ {
		word := best.words[n]
		if slices.ContainsFunc(possible[1:], func(k known) bool { return n >= len(k.words) || k.words[n] != word }) {
			return words
		}
		start := 0
		if n > 0 {
			start = best.ends[n-1]
		}
		at := func(n int) time.Duration { return time.Duration(d.from+n) * window }
		words = append(words, tone.Word{Text: word, Start: at(start), End: at(best.ends[n])})
		d.given = append(d.given, word)
	}
	d.complete = len(d.given) == len(best.words)
	return words
}

// possible returns the lines that may be the spoken one, the most similar first.
func (d *SentenceDecoder) possible() []known {
	type candidate struct {
		known
		like float64
	}
	var all []candidate
	for _, k := range d.of.lines {
		if n := len(d.given); n > len(k.words) || !slices.Equal(k.words[:n], d.given) {
			continue
		}
		like := -1.0
		for s := -shift; s <= shift; s++ {
			like = max(like, k.correlation(d.spoken, s))
		}
		if like >= similar {
			all = append(all, candidate{k, like})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		if a.like > b.like {
			return -1
		}
		return 1
	})
	var lines []known
	for _, c := range all {
		if c.like >= all[0].like-closeness {
			lines = append(lines, c.known)
		}
	}
	return lines
}

// correlation compares the spoken levels with those of the line, moved by a number of windows. Beyond its end the line
// is silent.
func (k known) correlation(spoken [][2]float64, moved int) float64 {
	like := 0.0
	for f := range 2 {
		var n, sx, sy, sxx, syy, sxy float64
		for i, s := range spoken {
			x, y := s[f], floor
			if at := i + moved; at >= 0 && at < len(k.levels) {
				y = k.levels[at][f]
			}
			n, sx, sy, sxx, syy, sxy = n+1, sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
		}
		if v := (n*sxx - sx*sx) * (n*syy - sy*sy); v > 0 {
			like += (n*sxy - sx*sy) / math.Sqrt(v) / 2
		}
	}
	return like
}
