package converse

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// charTime is how long a character is taken to last, where a voice gives no
// word times.
const charTime = 65 * time.Millisecond

// An utterance is one thing that the agent says, and how much of it was heard.
type utterance struct {
	number int64
	kind   string // turn.Reply, turn.Filler, turn.Notice
	rate   int
	played atomic.Int64 // samples that left
	dry    atomic.Int64 // frames of silence in the middle of it, for want of sound

	mu      sync.Mutex
	text    strings.Builder // what the model said so far
	words   []pipeline.Word // with times, as the voice tells them
	trimmed time.Duration   // of silence at the beginning, which was not played
	ready   time.Time       // first audible sample
	token   time.Time       // first speakable text
	samples int64           // of audio made so far
	usage   pipeline.Usage
}

// write adds text that the model said.
func (u *utterance) write(text string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.token.IsZero() && strings.TrimSpace(text) != "" {
		u.token = at
	}
	u.text.WriteString(text)
}

// add takes a stretch of speech and returns what of it is to be played: silence
// before the first sound is left out.
func (u *utterance) add(sp pipeline.Speech, at time.Time) []int16 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.words = append(u.words, sp.Words...)
	pcm := sp.PCM
	if u.ready.IsZero() {
		lead := leadingSilence(pcm)
		u.trimmed += span(u.rate, lead)
		if pcm = pcm[lead:]; len(pcm) == 0 {
			return nil
		}
		u.ready = at
	}
	u.samples += int64(len(pcm))
	return pcm
}

// audible is the sample value under which nothing can be heard (-50 dBFS).
const audible = 100

func leadingSilence(pcm []int16) int {
	for i, x := range pcm {
		if x > audible || x < -audible {
			return i
		}
	}
	return len(pcm)
}

// heard returns the words that were played, by their middle, and whether that
// is all there was.
func (u *utterance) heard(complete bool) (text string, words []pipeline.Word) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := strings.TrimSpace(u.text.String())
	played := span(u.rate, int(u.played.Load())) + u.trimmed
	timed := append(slices.Clip(u.words), u.estimate(all)...)
	for _, w := range timed {
		if complete || (w.Start+w.End)/2 <= played {
			w.Start, w.End = max(0, w.Start-u.trimmed), max(0, w.End-u.trimmed)
			words = append(words, w)
		}
	}
	if complete {
		return all, words
	}
	var said []string
	for _, w := range words {
		said = append(said, w.Text)
	}
	return strings.Join(said, " "), words
}

// estimate times the words of text that the voice has not timed yet, by their
// length.
func (u *utterance) estimate(text string) []pipeline.Word {
	fields := strings.Fields(text)
	var words []pipeline.Word
	at := u.trimmed
	if n := len(u.words); n > 0 {
		at = u.words[n-1].End
		fields = fields[min(n, len(fields)):]
	}
	for _, w := range fields {
		d := time.Duration(len([]rune(w))+1) * charTime
		words = append(words, pipeline.Word{Text: w, Start: at, End: at + d})
		at += d
	}
	return words
}

// timing returns when the first text and the first sound were there.
func (u *utterance) timing() (token, ready time.Time, chars int, usage pipeline.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.token, u.ready, u.text.Len(), u.usage
}

// spent notes what the answer cost.
func (u *utterance) spent(usage pipeline.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.usage = usage
}

// waiting is how much sound is made and has not left.
func (u *utterance) waiting() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return span(u.rate, int(u.samples-u.played.Load()))
}

func span(rate, samples int) time.Duration {
	return time.Duration(samples) * time.Second / time.Duration(rate)
}
