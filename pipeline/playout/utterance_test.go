package playout

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

func loud(d time.Duration) []int16 {
	pcm := make([]int16, d*8000/time.Second)
	for i := range pcm {
		pcm[i] = 5000
	}
	return pcm
}

// TestTranscript compares the transcript with the played audio.
func TestTranscript(t *testing.T) {
	const text = "Your table is booked for two. I have also sent the confirmation to your phone."
	clause := SpreadWords("Your table is booked for two.", 2*time.Second)
	for name, c := range map[string]struct {
		speech []pipeline.Speech
		played time.Duration
		whole  bool
		least  int // least number of words
		most   int
	}{
		"nothing":                            {nil, 0, false, 0, 0},
		"half a timed clause":                {[]pipeline.Speech{{PCM: loud(2 * time.Second), Words: clause}}, time.Second, false, 3, 3},
		"a clause without word times so far": {[]pipeline.Speech{{PCM: loud(2 * time.Second)}}, 2 * time.Second, false, 5, 7},
		"into the second clause":             {[]pipeline.Speech{{PCM: loud(2 * time.Second), Words: clause}, {PCM: loud(3 * time.Second)}}, 4 * time.Second, false, 10, 13},
		"leading silence is not played":      {[]pipeline.Speech{{PCM: append(make([]int16, 8000), loud(2*time.Second)...), Words: []pipeline.Word{{Text: "Your", Start: time.Second, End: 2 * time.Second}, {Text: "table", Start: 2 * time.Second, End: 3 * time.Second}}}}, time.Second, false, 1, 1},
		"all of it":                          {[]pipeline.Speech{{PCM: loud(5 * time.Second), Words: clause}}, 5 * time.Second, true, 15, 15},
	} {
		u := &Utterance{Rate: 8000}
		u.Write(text, time.Now())
		for _, s := range c.speech {
			u.Add(s, time.Now())
		}
		u.played.Store(int64(c.played * 8000 / time.Second))
		got, words := u.Transcript(c.whole)
		if n := len(strings.Fields(got)); n < c.least || n > c.most || !c.whole && n != len(words) {
			t.Errorf("%s: got %q (%d timed words), want %d to %d words", name, got, len(words), c.least, c.most)
		}
		if !strings.HasPrefix(text, got) {
			t.Errorf("%s: got %q, want only words of the text", name, got)
		}
	}
}

// TestTimingCountsCharacters checks that the length is in characters: Cyrillic letters have two bytes.
func TestTimingCountsCharacters(t *testing.T) {
	u := &Utterance{Rate: 8000}
	u.Write("Сәлем, ", time.Now())
	u.Write("Аня!", time.Now())
	if _, _, chars, _ := u.Timing(); chars != 11 {
		t.Errorf("got %d characters, want 11", chars)
	}
}

// TestCountHeard checks that an utterance is fully heard once its last word has ended and
// it is complete.
func TestCountHeard(t *testing.T) {
	for name, c := range map[string]struct {
		played   time.Duration
		complete bool
		words    int
		all      bool
	}{
		"in the middle of the last word": {1700 * time.Millisecond, true, 2, false},
		"to its end":                     {2 * time.Second, true, 2, true},
		"more may come":                  {2 * time.Second, false, 2, false},
		"before it":                      {time.Second, true, 1, false},
	} {
		u := &Utterance{Rate: 8000}
		u.Write("two words", time.Now())
		u.Add(pipeline.Speech{PCM: loud(2 * time.Second), Words: SpreadWords("two words", 2*time.Second)}, time.Now())
		if c.complete {
			u.Complete()
		}
		u.played.Store(int64(c.played * 8000 / time.Second))
		if n, all := u.CountHeard(); n != c.words || all != c.all {
			t.Errorf("%s: got %d words, all %v", name, n, all)
		}
	}
}

func TestWaiting(t *testing.T) {
	u := &Utterance{Rate: 8000}
	u.Add(pipeline.Speech{PCM: loud(time.Second)}, time.Now())
	u.played.Store(2000)
	if got := u.Buffered(); got != 750*time.Millisecond {
		t.Errorf("got %v buffered", got)
	}
}

// TestNoSpaces checks that each character counts as a word in a script without spaces.
func TestNoSpaces(t *testing.T) {
	u := &Utterance{Rate: 8000}
	u.Write("您好，请问 Parley 今天几点开门？", time.Now())
	u.Add(pipeline.Speech{PCM: loud(3 * time.Second)}, time.Now())
	u.Complete()
	u.played.Store(12000)
	got, _ := u.Transcript(false)
	if n := len([]rune(got)); n < 5 || n > 16 || !strings.HasPrefix("您好，请问 Parley 今天几点开门？", got) {
		t.Errorf("got %q for the first half", got)
	}
	if u.ResumePoint() == 0 {
		t.Error("resumes at the start")
	}
}
