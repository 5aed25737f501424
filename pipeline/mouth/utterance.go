package mouth

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// syllableTime is how long a syllable is taken to last, where a voice gives no
// word times and has not come to its end.
const syllableTime = 220 * time.Millisecond

// rough is how long a word may sound on after its end as the voice tells it.
const rough = 100 * time.Millisecond

// spare is how much of a word may be left for a pause to wait for its end: a word
// that lacks so much may be heard as a whole, or not at all.
const spare = 25 * time.Millisecond

// hop is for how long sound is either heard or not.
const hop = 5 * time.Millisecond

// An Utterance is one thing that the agent says, and how much of it was heard.
type Utterance struct {
	Number int64
	Kind   string       // turn.Reply, turn.Filler, turn.Notice
	Rate   int          // Hz
	played atomic.Int64 // samples that left
	faded  atomic.Int64 // the last of them that a pause faded out
	dry    atomic.Int64 // frames of silence in the middle of it, for want of sound
	rests  atomic.Bool  // nothing more is to be said for a while
	began  atomic.Int64 // when the first sample left, Unix nanoseconds
	queued int64        // samples that were pushed; of whoever holds the floor

	mu      sync.Mutex
	text    strings.Builder // what the model said so far
	words   []pipeline.Word // with times, as the voice tells them
	trimmed time.Duration   // of silence at the beginning, which was not played
	base    time.Duration   // where the voice that speaks began
	ready   time.Time       // first audible sample
	token   time.Time       // first speakable text
	samples int64           // of audio made so far
	sounds  []bool          // each hop of it, whether it can be heard
	whole   bool            // no more comes
	usage   pipeline.Usage
}

// Write adds text that the model said.
func (u *Utterance) Write(text string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.token.IsZero() && strings.TrimSpace(text) != "" {
		u.token = at
	}
	u.text.WriteString(text)
}

// Add takes a stretch of speech and returns what of it is to be played: silence
// before the first sound is left out.
func (u *Utterance) Add(sp pipeline.Speech, at time.Time) []int16 {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range sp.Words {
		w.Start, w.End = w.Start+u.base, w.End+u.base
		u.words = append(u.words, w)
	}
	pcm := sp.PCM
	if u.ready.IsZero() {
		lead := LeadingSilence(pcm)
		u.trimmed += Span(u.Rate, lead)
		if pcm = pcm[lead:]; len(pcm) == 0 {
			return nil
		}
		u.ready = at
	}
	u.listen(pcm)
	u.samples += int64(len(pcm))
	u.rests.Store(false)
	return pcm
}

// listen notes where what is made next can be heard. It needs u.mu.
func (u *Utterance) listen(pcm []int16) {
	size := u.hop()
	for i, x := range pcm {
		at := (int(u.samples) + i) / size
		if at == len(u.sounds) {
			u.sounds = append(u.sounds, false)
		}
		if x > audible || x < -audible {
			u.sounds[at] = true
		}
	}
}

// hop is how many samples are one.
func (u *Utterance) hop() int { return max(1, int(hop*time.Duration(u.Rate)/time.Second)) }

// silence is the first sample from at on that cannot be heard. It needs u.mu.
func (u *Utterance) silence(at int64) int64 {
	size := int64(u.hop())
	i := int(at / size)
	if i >= len(u.sounds) || !u.sounds[i] {
		return at
	}
	for i < len(u.sounds) && u.sounds[i] {
		i++
	}
	return min(int64(i)*size, u.samples)
}

// audible is the sample value under which nothing can be heard (-50 dBFS).
const audible = 100

// LeadingSilence is how many samples pass before the first that can be heard.
func LeadingSilence(pcm []int16) int {
	for i, x := range pcm {
		if x > audible || x < -audible {
			return i
		}
	}
	return len(pcm)
}

// Heard returns the words that were played, by their middle, and whether that
// is all there was.
func (u *Utterance) Heard(complete bool) (text string, words []pipeline.Word) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := strings.TrimSpace(u.text.String())
	played := u.position()
	for _, w := range u.timed() {
		if complete || (w.Start+w.End)/2 <= played {
			w.Start, w.End = max(0, w.Start-u.trimmed), max(0, w.End-u.trimmed)
			words = append(words, w)
		}
	}
	if complete {
		return all, words
	}
	return join(words), words
}

// HeardWords is how many words the caller has heard, and whether the last of
// them was said to its end and no more come.
func (u *Utterance) HeardWords() (n int, all bool) {
	_, words := u.Heard(false)
	u.mu.Lock()
	defer u.mu.Unlock()
	timed := u.timed()
	return len(words), u.whole && len(timed) > 0 && timed[len(timed)-1].End <= u.position()+media.FrameTime
}

// Saying is what was said in the last d, with the word that is being said.
func (u *Utterance) Saying(d time.Duration) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	played := u.position()
	var words []pipeline.Word
	for _, w := range u.timed() {
		if w.Start <= played && w.End >= played-d {
			words = append(words, w)
		}
	}
	return join(words)
}

// Boundary is the sample to go on from after a pause: the beginning of the word
// that the pause cut, be it in its fade, or where it stopped, between two words.
// None, nil, has -1.
func (u *Utterance) Boundary() int64 {
	if u == nil {
		return -1
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	played := u.played.Load()
	if w, cut := u.cut(played-u.faded.Load(), played); cut {
		return int64((max(w.Start, u.trimmed) - u.trimmed) * time.Duration(u.Rate) / time.Second)
	}
	return played
}

// Break is the sample for a pause to begin with: the end of the word that is being
// said, where little of it is left, and what comes next otherwise. None, nil, has 0.
func (u *Utterance) Break() int64 {
	if u == nil {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	played := u.played.Load()
	if w, cut := u.cut(played, played); cut && w.End <= u.time(played)+spare {
		return int64((w.End-u.trimmed)*time.Duration(u.Rate)/time.Second) + 1
	}
	return played
}

// cut is the word that silence from one sample on cuts, where what follows that is
// said up to another. Sound that goes on after the time that the voice tells of a
// word's end is of that word: some count the last of it as space. It needs u.mu.
func (u *Utterance) cut(from, until int64) (w pipeline.Word, is bool) {
	began, over := u.time(from), u.time(u.silence(from))
	words := u.timed()
	for i, w := range words {
		end := w.End + rough
		if i+1 < len(words) {
			end = min(end, words[i+1].Start)
		}
		w.End = max(w.End, min(end, over))
		if w.Start < u.time(until) && began < w.End {
			return w, true
		}
	}
	return w, false
}

// Played is how many samples left.
func (u *Utterance) Played() int { return int(u.played.Load()) }

// Began is when the first sample left.
func (u *Utterance) Began() time.Time { return time.Unix(0, u.began.Load()) }

// Rest tells that all of a stretch is made, and another one comes when it comes:
// the silence between the two is no want of sound. Speech that is added ends it.
func (u *Utterance) Rest() { u.rests.Store(true) }

// Dry is how long it was silent in the middle for want of sound.
func (u *Utterance) Dry() time.Duration { return time.Duration(u.dry.Load()) * media.FrameTime }

// position is how far the voice has come on its own clock. It needs u.mu.
func (u *Utterance) position() time.Duration { return u.time(u.played.Load()) }

// time is when a sample is said, on the voice's own clock. It needs u.mu.
func (u *Utterance) time(sample int64) time.Duration { return Span(u.Rate, int(sample)) + u.trimmed }

// timed are all words of the text and when they are said. Those that the voice
// has not timed are spread over the sound by their syllables: over what there
// is of it, where it is complete. It needs u.mu.
func (u *Utterance) timed() []pipeline.Word {
	fields := split(u.text.String())
	words := slices.Clip(u.words)
	at := u.trimmed
	if n := len(words); n > 0 {
		at = words[n-1].End
		fields = fields[min(n, len(fields)):]
	}
	weights, sum := make([]int, len(fields)), 0
	for i, w := range fields {
		weights[i] = syllables(w)
		sum += weights[i]
	}
	each := syllableTime
	if left := u.trimmed + Span(u.Rate, int(u.samples)) - at; u.whole && sum > 0 && left > 0 {
		each = left / time.Duration(sum)
	}
	for i, w := range fields {
		d := time.Duration(weights[i]) * each
		words = append(words, pipeline.Word{Text: w, Start: at, End: at + d})
		at += d
	}
	return words
}

// syllables counts the groups of vowels in a word, and spells digits.
func syllables(word string) int {
	n, in := 0, false
	for _, r := range strings.ToLower(word) {
		vowel := strings.ContainsRune("aeiouyäöüáéíóúàèìòùâêîôûаеёиоуыэюяәіөұү", r)
		if unicode.IsDigit(r) || vowel && !in {
			n++
		}
		in = vowel
	}
	return max(1, n)
}

// Complete says that no more speech comes.
func (u *Utterance) Complete() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.whole = true
}

// Timing returns when the first text and the first sound were there.
func (u *Utterance) Timing() (token, ready time.Time, chars int, usage pipeline.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.token, u.ready, u.text.Len(), u.usage
}

// Spend notes what the answer cost, beside what was noted before.
func (u *Utterance) Spend(usage pipeline.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.usage.PromptTokens += usage.PromptTokens
	u.usage.CompletionTokens += usage.CompletionTokens
}

// Anew has the words of the speech that comes next timed from the end of what
// there is: another stretch of the voice begins.
func (u *Utterance) Anew() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ready.IsZero() {
		u.base = u.trimmed + Span(u.Rate, int(u.samples))
	}
}

// Waiting is how much sound is made and has not left.
func (u *Utterance) Waiting() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Span(u.Rate, int(u.samples-u.played.Load()))
}

// Span is how long samples last at rate (Hz).
func Span(rate, samples int) time.Duration {
	return time.Duration(samples) * time.Second / time.Duration(rate)
}

// Evenly spreads the words of text over d.
func Evenly(text string, d time.Duration) []pipeline.Word {
	fields := strings.Fields(text)
	var words []pipeline.Word
	for i, f := range fields {
		place := func(i int) time.Duration { return d * time.Duration(i) / time.Duration(len(fields)) }
		words = append(words, pipeline.Word{Text: f, Start: place(i), End: place(i + 1)})
	}
	return words
}
