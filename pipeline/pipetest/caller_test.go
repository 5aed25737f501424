package pipetest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/media/tone"
)

const rate = 8000

// A kind is the kind of a caller's utterance.
type kind string

const (
	sentence  kind = "sentence"  // needs an answer
	listening kind = "listening" // a backchannel
	noise     kind = "noise"     // a cough
	keys      kind = "keys"
)

// An utterance is what the caller said or did, with times from the start of the call.
type utterance struct {
	kind  kind
	words []tone.Word
	span  span
	open  bool // its last word suggests that more follows
}

type line struct {
	*mediatest.Leg
	began time.Time
	loud  atomic.Int64 // when the agent was last heard, from the start of the call
	since atomic.Int64 // when the agent's current speech began
}

func (l *line) Play(f media.Feed) { l.Leg.Play(overhear{f, l}) }

type overhear struct {
	media.Feed
	line *line
}

func (o overhear) FillFrame(f media.Frame, due time.Time) {
	o.Feed.FillFrame(f, due)
	if tone.Level(f) > -45 {
		now := int64(due.Sub(o.line.began))
		if now-o.line.loud.Load() > int64(400*time.Millisecond) {
			o.line.since.Store(now)
		}
		o.line.loud.Store(now)
	}
}

type caller struct {
	*line
	*rand.Rand
	over  <-chan struct{} // the agent hung up
	said  []utterance
	words int
}

func (c *caller) now() time.Duration { return time.Since(c.began) }

// pass lets time pass. It reports false once the call has ended.
func (c *caller) pass(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.over:
		return false
	}
}

func (c *caller) between(low, high int) time.Duration {
	return time.Duration(low+c.IntN(high-low)) * time.Millisecond
}

func (c *caller) say(k kind, text string) bool {
	pcm, words := tone.Encode(rate, text)
	return c.utter(k, pcm, words, text)
}

func (c *caller) utter(k kind, pcm []int16, words []tone.Word, text string) bool {
	at := c.now().Truncate(media.FrameTime) + media.FrameTime // the audio begins with the next frame
	u := utterance{kind: k, span: span{at, at + time.Duration(len(pcm))*time.Second/rate}, open: endsOpen(text)}
	for _, w := range words {
		u.words = append(u.words, tone.Word{Text: w.Text, Start: at + w.Start, End: at + w.End})
	}
	c.said = append(c.said, u)
	c.Say(pcm)
	return c.pass(u.span.to - c.now() + wordGap)
}

// wordGap is the minimum gap between two words.
const wordGap = 80 * time.Millisecond

func endsOpen(text string) bool {
	f := strings.Fields(text)
	return len(f) > 0 && strings.Contains(" because and the seven ", " "+f[len(f)-1]+" ")
}

func (c *caller) content(n int) string {
	var all []string
	for range n {
		all = append(all, callerWord(c.words))
		c.words++
	}
	return strings.Join(all, " ")
}

// phrase returns a sentence or a part of one.
func (c *caller) phrase() string {
	text := c.content(1 + c.IntN(4))
	switch c.IntN(12) {
	case 0:
		return "i want " + text
	case 1:
		return "i want i want the " + text // the caller begins the sentence again
	case 2:
		return text + " please"
	case 3:
		return text + " because"
	case 4:
		return text + " and the"
	case 5:
		return text + " four two seven"
	default:
		return text
	}
}

func (c *caller) cough() bool {
	pcm := make([]int16, c.between(60, 400)*rate/time.Second)
	for i := range pcm {
		pcm[i] = int16(3000 * c.NormFloat64() * (1 - float64(i)/float64(len(pcm))))
	}
	return c.utter(noise, pcm, nil, "")
}

func (c *caller) press() bool {
	typed := fmt.Sprint(c.IntN(1000))
	if c.IntN(2) == 0 {
		typed += "#"
	}
	from, to := c.now(), c.now()
	for _, k := range typed {
		c.Press(k)
		to = c.now()
		if !c.pass(c.between(80, 500)) {
			break
		}
	}
	c.said = append(c.said, utterance{kind: keys, span: span{from, to}})
	return c.pass(0)
}

func (c *caller) speaks(d time.Duration) bool {
	asked := c.now()
	for c.now()-asked < 6*time.Second {
		if loud, since := time.Duration(c.loud.Load()), time.Duration(c.since.Load()); loud > asked && c.now()-loud < 100*time.Millisecond && loud-max(since, asked) >= d {
			return true
		}
		if !c.pass(media.FrameTime) {
			return false
		}
	}
	return true
}

// listen waits until the agent has spoken and is silent.
func (c *caller) listen() bool {
	asked, still := c.now(), c.between(300, 900)
	for c.now()-asked < 12*time.Second {
		loud := time.Duration(c.loud.Load())
		if loud > asked && c.now()-loud > still || c.now()-max(asked, loud) > 7*time.Second {
			return true
		}
		if !c.pass(media.FrameTime) {
			return false
		}
	}
	return true
}

// act does one random thing. It reports false once the call has ended.
func (c *caller) act() bool {
	switch c.IntN(14) {
	case 0: // pauses inside a sentence
		for range 1 + c.IntN(3) {
			if !c.say(sentence, c.phrase()) || !c.pass(c.between(80, 2000)) {
				return false
			}
		}
		return c.say(sentence, c.phrase()) && c.listen()
	case 1: // continues while the answer is prepared, or just began
		return c.say(sentence, c.phrase()) && c.pass(c.between(150, 1600)) && c.say(sentence, c.phrase()) && c.listen()
	case 2: // says a command during the answer
		return c.say(sentence, c.phrase()) && c.speaks(c.between(20, 2500)) && c.say(sentence, "stop "+c.content(2)) && c.listen()
	case 3: // says a sentence during the answer
		return c.say(sentence, c.phrase()) && c.speaks(c.between(20, 2500)) && c.say(sentence, c.content(3+c.IntN(4))) && c.listen()
	case 4: // says a backchannel
		word := []string{"mhm", "okay", "yeah", "mhm okay"}[c.IntN(4)]
		return c.say(sentence, c.phrase()) && c.speaks(c.between(100, 2500)) && c.say(listening, word) && c.listen()
	case 5: // coughs during the answer
		return c.say(sentence, c.phrase()) && c.speaks(c.between(20, 2500)) && c.cough() && c.listen()
	case 6: // coughs anywhere
		return c.say(sentence, c.phrase()) && c.pass(c.between(50, 1800)) && c.cough() && c.listen()
	case 7:
		return c.press() && c.listen()
	case 8: // speaks at any time
		return c.say(sentence, c.phrase()) && c.pass(c.between(0, 4000))
	default:
		return c.say(sentence, c.phrase()) && c.listen()
	}
}
