package playout

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// syllableTime is the assumed duration of a syllable while a voice has given no word times
// and has not finished.
const syllableTime = 220 * time.Millisecond

// wordTail is how long a word may sound beyond the end that the voice reports.
const wordTail = 100 * time.Millisecond

// maxWordRest is the longest time that a pause waits for the end of a word. If so little of a word were cut off, it
// would be unclear whether the caller understood it.
const maxWordRest = 25 * time.Millisecond

// hopTime is the length of the steps in which audio is classified as audible or silent.
const hopTime = 5 * time.Millisecond

// An Utterance is one thing that the agent says, with its playout state.
type Utterance struct {
	Number      int64
	Kind        string       // turn.Reply, turn.Filler, turn.Notice
	Rate        int          // Hz
	played      atomic.Int64 // samples that were sent
	fadedOut    atomic.Int64 // number of the last played samples that a pause faded out
	underrun    atomic.Int64 // silent frames that were sent because audio was late
	gapExpected atomic.Bool  // silence after the audio so far is no underrun
	began       atomic.Int64 // when the first sample was sent, in Unix nanoseconds
	queued      int64        // number of samples that were pushed; belongs to the goroutine that calls Push

	mu          sync.Mutex
	text        strings.Builder // text of the model so far
	chars       int             // number of characters of text
	words       []pipeline.Word // word times as reported by the voice
	trimmed     time.Duration   // leading silence that was not played
	base        time.Duration   // start of the current segment
	ready       time.Time       // when the first audible sample was available
	token       time.Time       // when the first text that can be spoken was available
	samples     int64           // samples of audio produced so far
	audibleHops []bool          // whether each hop is audible
	complete    bool            // no more audio follows
	usage       pipeline.Usage
}

// Write adds text of the model.
func (u *Utterance) Write(text string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.token.IsZero() && strings.TrimSpace(text) != "" {
		u.token = at
	}
	u.text.WriteString(text)
	u.chars += utf8.RuneCountInString(text)
}

// Add takes a stretch of speech and returns the part to play: everything from the first audible
// sample on.
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
		u.trimmed += SamplesDuration(u.Rate, lead)
		if pcm = pcm[lead:]; len(pcm) == 0 {
			return nil
		}
		u.ready = at
	}
	u.markAudible(pcm)
	u.samples += int64(len(pcm))
	u.gapExpected.Store(false)
	return pcm
}

// markAudible classifies the hops of pcm. It needs u.mu.
func (u *Utterance) markAudible(pcm []int16) {
	size := u.hopSamples()
	for i, x := range pcm {
		at := (int(u.samples) + i) / size
		if at == len(u.audibleHops) {
			u.audibleHops = append(u.audibleHops, false)
		}
		if x > audible || x < -audible {
			u.audibleHops[at] = true
		}
	}
}

func (u *Utterance) hopSamples() int { return max(1, int(hopTime*time.Duration(u.Rate)/time.Second)) }

// nextSilence returns the first silent sample at or after at. It needs u.mu.
func (u *Utterance) nextSilence(at int64) int64 {
	size := int64(u.hopSamples())
	i := int(at / size)
	if i >= len(u.audibleHops) || !u.audibleHops[i] {
		return at
	}
	for i < len(u.audibleHops) && u.audibleHops[i] {
		i++
	}
	return min(int64(i)*size, u.samples)
}

// audible is the sample value above which audio is audible (-50 dBFS).
const audible = 100

// LeadingSilence returns the number of samples before the first audible one.
func LeadingSilence(pcm []int16) int {
	for i, x := range pcm {
		if x > audible || x < -audible {
			return i
		}
	}
	return len(pcm)
}

// Transcript returns the words whose middle was played, or all words if complete.
func (u *Utterance) Transcript(complete bool) (text string, words []pipeline.Word) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := strings.TrimSpace(u.text.String())
	played := u.position()
	for _, w := range u.timedWords() {
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

// CountHeard returns the number of words that were played, and whether the utterance is
// complete and its last word was played to the end.
func (u *Utterance) CountHeard() (n int, all bool) {
	_, words := u.Transcript(false)
	u.mu.Lock()
	defer u.mu.Unlock()
	timed := u.timedWords()
	return len(words), u.complete && len(timed) > 0 && timed[len(timed)-1].End <= u.position()+media.FrameTime
}

// RecentText returns the words played within the last d, including the current one.
func (u *Utterance) RecentText(d time.Duration) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	played := u.position()
	var words []pipeline.Word
	for _, w := range u.timedWords() {
		if w.Start <= played && w.End >= played-d {
			words = append(words, w)
		}
	}
	return join(words)
}

// ResumePoint returns the sample to resume at after a pause: the start of the word that the
// pause or its fade cut, or the point of the pause if it lies between two words. It is -1 for a
// nil utterance.
func (u *Utterance) ResumePoint() int64 {
	if u == nil {
		return -1
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	played := u.played.Load()
	if w, cut := u.cutWord(played-u.fadedOut.Load(), played); cut {
		return int64((max(w.Start, u.trimmed) - u.trimmed) * time.Duration(u.Rate) / time.Second)
	}
	return played
}

// PausePoint returns the sample at which a pause should begin: the end of the current word if
// little of it is left, otherwise the next sample. It is 0 for a nil utterance.
func (u *Utterance) PausePoint() int64 {
	if u == nil {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	played := u.played.Load()
	if w, cut := u.cutWord(played, played); cut && w.End <= u.time(played)+maxWordRest {
		return int64((w.End-u.trimmed)*time.Duration(u.Rate)/time.Second) + 1
	}
	return played
}

// cutWord returns the word that is cut off if playout begins to fade out at sample from and stops at sample until.
// Sound after the reported end of a word belongs to the word, because some voices report the last part of a word as
// space. It needs u.mu.
func (u *Utterance) cutWord(from, until int64) (w pipeline.Word, is bool) {
	began, over := u.time(from), u.time(u.nextSilence(from))
	words := u.timedWords()
	for i, w := range words {
		end := w.End + wordTail
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

// Played returns the number of samples sent.
func (u *Utterance) Played() int { return int(u.played.Load()) }

// StartedAt returns when the first sample was sent.
func (u *Utterance) StartedAt() time.Time { return time.Unix(0, u.began.Load()) }

// ExpectGap declares that a segment is complete. The silence until the next Add is then not an underrun.
func (u *Utterance) ExpectGap() { u.gapExpected.Store(true) }

// Underrun returns the total silence that was sent because audio was late.
func (u *Utterance) Underrun() time.Duration {
	return time.Duration(u.underrun.Load()) * media.FrameTime
}

// position returns the time of the next sample to play, on the scale of u.time. It needs u.mu.
func (u *Utterance) position() time.Duration { return u.time(u.played.Load()) }

// time returns the time of a sample from the start of the voice's audio, trimmed silence included. It needs u.mu.
func (u *Utterance) time(sample int64) time.Duration {
	return SamplesDuration(u.Rate, int(sample)) + u.trimmed
}

// timedWords returns all words with their times. It estimates the times that the voice has not reported from the
// number of syllables. Once the utterance is complete, these words fill the remaining audio. It needs u.mu.
func (u *Utterance) timedWords() []pipeline.Word {
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
	if left := u.trimmed + SamplesDuration(u.Rate, int(u.samples)) - at; u.complete && sum > 0 && left > 0 {
		each = left / time.Duration(sum)
	}
	for i, w := range fields {
		d := time.Duration(weights[i]) * each
		words = append(words, pipeline.Word{Text: w, Start: at, End: at + d})
		at += d
	}
	return words
}

// syllables counts vowel groups in a word; each digit counts as one.
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

// Complete declares that no more speech comes.
func (u *Utterance) Complete() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.complete = true
}

// Timing returns when the first text and the first audible sample were available, the
// number of characters of the text, and the usage.
func (u *Utterance) Timing() (token, ready time.Time, chars int, usage pipeline.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.token, u.ready, u.chars, u.usage
}

// AddUsage adds usage to the model's usage for this utterance.
func (u *Utterance) AddUsage(usage pipeline.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.usage.PromptTokens += usage.PromptTokens
	u.usage.CompletionTokens += usage.CompletionTokens
	u.usage.CachedTokens += usage.CachedTokens
}

// StartSegment begins another segment of the voice. The voice's word times count from its start.
func (u *Utterance) StartSegment() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ready.IsZero() {
		u.base = u.trimmed + SamplesDuration(u.Rate, int(u.samples))
	}
}

// Buffered returns the duration of audio that is not sent yet.
func (u *Utterance) Buffered() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return SamplesDuration(u.Rate, int(u.samples-u.played.Load()))
}

// SamplesDuration returns the duration of samples at rate (Hz).
func SamplesDuration(rate, samples int) time.Duration {
	return time.Duration(samples) * time.Second / time.Duration(rate)
}

// SpreadWords spreads the words of text evenly over d.
func SpreadWords(text string, d time.Duration) []pipeline.Word {
	fields := strings.Fields(text)
	var words []pipeline.Word
	for i, f := range fields {
		place := func(i int) time.Duration { return d * time.Duration(i) / time.Duration(len(fields)) }
		words = append(words, pipeline.Word{Text: f, Start: place(i), End: place(i + 1)})
	}
	return words
}
