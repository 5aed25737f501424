package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/media/tone"
)

// A Name is what happens on a call, again and again.
type Name string

// Scenarios.
const (
	Plain       Name = "plain"       // a sentence without a pause
	Pauses      Name = "pauses"      // a sentence with pauses
	BargeIn     Name = "barge-in"    // a command or a sentence into the answer
	Backchannel Name = "backchannel" // a sign of listening into the answer
	Cough       Name = "cough"       // a cough into the answer
	Resume      Name = "resume"      // a noise into the answer, long enough to be taken for speech
	Echo        Name = "echo"        // the line sends back what the agent says
	Hangup      Name = "hang-up"     // the callee leaves in the middle of the answer
)

const rate = 8000 // Hz

// manyWords are the words of answers in which something is to happen.
const manyWords = 18

// A move is one line of a callee, and what it is for.
type move struct {
	text   string        // its words; empty of a noise
	parts  corpus.Turn   // with their pauses
	spans  []voice       // where it is sound
	into   time.Duration // said into the answer to the turn before
	sound  time.Duration // of a noise or a backchannel: how long it lasts
	answer bool          // it is to be answered
}

// A voice is a stretch of sound of a line: samples of it, and the pause after.
type voice struct {
	from, to int
	kind     corpus.Kind // of the pause; empty after the last
}

// A call is what a callee does on one call.
type call struct {
	id    string
	name  Name
	words int // of each answer
	turns []move
	lines []callee.Line
	echo  time.Duration
}

// planner makes calls up.
type planner struct {
	*corpus.Speaker
	call
}

// plan makes up the calls of a run, in the order in which they are placed.
func (o Options) plan() []call {
	var all []call
	add := func(name Name, n, each int) {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			return
		}
		for stream := uint64(0); n > 0; stream++ {
			p := planner{Speaker: corpus.New(o.Seed, stream<<8|kindOf(name)), call: call{name: name, words: wording.Few}}
			p.id = fmt.Sprintf("%s-%d", name, stream)
			n -= p.fill(each, n)
			all = append(all, p.call)
		}
	}
	others := cmp.Or(o.Others, max(1, o.Pauses/12))
	add(Pauses, o.Pauses, 10)
	add(Plain, 2*others, 10)
	add(BargeIn, 2*others, 4)
	add(Backchannel, others, 4)
	add(Cough, others, 5)
	add(Resume, others, 5)
	add(Echo, others, 5)
	add(Hangup, max(1, others/2), 1)
	rand.New(rand.NewPCG(o.Seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // repeatable on purpose
	// The longest first, so that none is left over at the end.
	slices.SortStableFunc(all, func(a, b call) int { return cmp.Compare(b.length()/int(20*rate), a.length()/int(20*rate)) })
	return all
}

// kindOf keeps the scenarios' streams of chance apart.
func kindOf(n Name) uint64 {
	return uint64(slices.Index([]Name{Plain, Pauses, BargeIn, Backchannel, Cough, Resume, Echo, Hangup}, n)) //nolint:gosec // one of them
}

// length is about how many samples the call has.
func (c call) length() int {
	n := 0
	for _, l := range c.lines {
		n += len(l.PCM) + 2*rate
	}
	return n
}

// fill plans up to each exchanges, or pauses, and at most n. It returns how many.
func (p *planner) fill(each, n int) int {
	done := 0
	for done < min(each, n) {
		switch p.name {
		case Pauses:
			t := p.Paused()
			done += len(t) - 2
			p.say(t)
		case Plain:
			p.say(p.Plain())
		case Echo:
			p.words = manyWords
			p.echo = p.Between(60*time.Millisecond, 200*time.Millisecond)
			p.say(p.Plain())
		default:
			p.words = manyWords
			p.say(p.Plain())
			p.into(done)
		}
		done++
	}
	return done
}

// say adds a turn that is said in silence.
func (p *planner) say(t corpus.Turn) {
	var l callee.Line
	x := move{text: t.Text(), parts: t, answer: true}
	for _, part := range t {
		pcm, _ := tone.Say(rate, part.Text)
		x.spans = append(x.spans, voice{len(l.PCM), len(l.PCM) + len(pcm), part.Kind})
		l.PCM = append(append(l.PCM, pcm...), make([]int16, int(part.Pause*rate/time.Second))...)
	}
	p.add(x, l)
}

func (p *planner) add(x move, l callee.Line) {
	if len(x.spans) == 0 {
		x.spans = []voice{{0, len(l.PCM), ""}}
	}
	x.into, x.sound = l.Into, time.Duration(len(l.PCM))*time.Second/rate
	p.turns, p.lines = append(p.turns, x), append(p.lines, l)
}

// into adds what comes into the answer of the turn before, for the n-th time.
func (p *planner) into(n int) {
	l := callee.Line{
		Into:  p.Between(600*time.Millisecond, 2*time.Second),
		Think: 1500 * time.Millisecond, // a pause of the agent's is not its end
	}
	var x move
	switch p.name {
	case BargeIn:
		x.text = p.Content()
		x.answer = true
		if n%2 == 0 {
			x.text, x.answer = corpus.Commands()[n/2], false // no line twice on one call
		}
	case Backchannel:
		x.text = corpus.Backchannels()[n]
	case Cough:
		l.PCM = p.Cough(rate, p.Between(corpus.ShortestCough, corpus.LongestCough))
	case Resume:
		l.PCM = p.Cough(rate, p.Between(400*time.Millisecond, 600*time.Millisecond))
	case Hangup:
		l.PCM, l.Hangup = make([]int16, 160), true
	case Plain, Pauses, Echo:
	}
	if x.text != "" {
		x.parts = corpus.Turn{{Text: x.text}}
		l.PCM, _ = tone.Say(rate, x.text)
	}
	l.Unanswered = !x.answer
	p.add(x, l)
}
