package audiogen

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/tone"
)

// TestRecognizer speaks lines with espeak-ng through a telephone line, softer and at another sample rate. The recognizer
// must return their words, the last one when the line ends, and never a wrong one.
func TestRecognizer(t *testing.T) {
	if _, err := exec.LookPath("espeak-ng"); err != nil {
		t.Skip("espeak-ng is not installed")
	}
	var lines []Sentence
	for n, text := range []string{
		"i would like to book a table for two tonight", "i would like to book a table for four on sunday",
		"what time do you open tomorrow", "can you tell me the price of the large one", "yes please",
		"i would like to cancel my order", "no thank you that is all for today", "what time do you close",
	} {
		pcm, err := Say(t.Context(), Voices()[n%3], text, SentenceRate)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, Sentence{text, pcm})
	}
	r := NewRecognizer(lines)
	for _, rate := range []int{SentenceRate, 2 * SentenceRate} {
		d := r.NewDecoder(rate)
		at := time.Duration(0)
		hear := func(pcm []int16) (words []tone.Word) {
			for len(pcm) > 0 {
				n := min(SentenceRate/50, len(pcm))
				var sent []int16
				for _, x := range pcm[:n] {
					for range rate / SentenceRate {
						sent = append(sent, x/2)
					}
				}
				words = append(words, d.Decode(sent)...)
				pcm = pcm[n:]
				at += time.Duration(n) * time.Second / SentenceRate
			}
			return words
		}
		hear(make([]int16, SentenceRate/2))
		for _, l := range lines {
			words := hear(Phone(l.PCM))
			end := at
			words = append(words, hear(make([]int16, SentenceRate))...)
			if got := join(words); got != l.Text {
				t.Errorf("%d Hz: got %q, want %q", rate, got, l.Text)
			} else if off := words[len(words)-1].End - end; off < -130*time.Millisecond || off > 40*time.Millisecond {
				t.Errorf("%d Hz: %q ends %v after the audio", rate, l.Text, off)
			}
			part := hear(Phone(l.PCM[:len(l.PCM)/2]))
			part = append(part, hear(make([]int16, SentenceRate))...)
			if got := join(part); !strings.HasPrefix(l.Text, got) {
				t.Errorf("%d Hz: half of %q: got %q", rate, l.Text, got)
			}
		}
	}
}

func join(words []tone.Word) string {
	var all []string
	for _, w := range words {
		all = append(all, w.Text)
	}
	return strings.Join(all, " ")
}
