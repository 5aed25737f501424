package scenario

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/bench/spoken"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/history"
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
	keys   string        // that are pressed, instead
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
	noise []int16
}

// planner makes calls up.
type planner struct {
	*corpus.Speaker
	call
	scene *scene.Scene
	drawn map[string]int // of the lines that there are few of, by kind
}

// plan makes up the calls of a run, in the order in which they are placed.
func (o Options) plan() ([]call, error) {
	if o.Scene != nil {
		return o.calls(o.Scene, o.Scene.Exchanges), nil
	}
	others := cmp.Or(o.Others, max(1, o.Pauses/12))
	counts := map[Name]int{Pauses: o.Pauses, Plain: 2 * others, BargeIn: 2 * others, Hangup: max(1, others/2)}
	var all []call
	names := []Name{Pauses, Plain, BargeIn, Backchannel, Cough, Resume, Echo, Hangup}
	for _, name := range o.Only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("only %q: accepted are %v; others are played by --scenario", name, names)
		}
	}
	for _, name := range names {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			continue
		}
		s, err := scene.Find(string(name))
		if err != nil {
			return nil, err
		}
		all = append(all, o.calls(s, cmp.Or(counts[name], others))...)
	}
	rand.New(rand.NewPCG(o.Seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // repeatable on purpose
	// The longest first, so that none is left over at the end.
	slices.SortStableFunc(all, func(a, b call) int { return cmp.Compare(b.length()/int(20*rate), a.length()/int(20*rate)) })
	return all, nil
}

// calls are those of a scene with n exchanges, or pauses, in all.
func (o Options) calls(s *scene.Scene, n int) []call {
	var all []call
	for stream := uint64(0); n > 0; stream++ {
		p := planner{
			Speaker: corpus.New(o.Seed, stream<<8|kindOf(Name(s.Kind()))), scene: s, drawn: map[string]int{},
			call: call{id: fmt.Sprintf("%s-%d", s.Name, stream), name: Name(s.Kind()), words: s.Words},
		}
		n -= p.fill(s.Each, n)
		if s.Noise != nil {
			p.noise = noise(s.Noise, p.Rand())
		}
		all = append(all, p.call)
	}
	return all
}

// kindOf keeps the scenarios' streams of chance apart.
func kindOf(n Name) uint64 {
	return uint64(slices.Index([]Name{Plain, Pauses, BargeIn, Backchannel, Cough, Resume, Echo, Hangup}, n)) //nolint:gosec // one of them
}

// wordLevel is the root mean square of tone words while they last.
const wordLevel = 0.25 * 32767

// noise is five seconds of it.
func noise(n *scene.Noise, rnd *rand.Rand) []int16 {
	m := &spoken.Maker{Rate: rate}
	loud := wordLevel * math.Pow(10, -n.SNR/20)
	pcm := make([]int16, 5*rate)
	for i, x := range m.Noise(spoken.Kind(n.Kind), len(pcm), rnd) {
		pcm[i] = int16(max(-32768, min(32767, loud*x)))
	}
	return pcm
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
		if e := p.scene.Echo; e != nil {
			p.echo = p.Between(e.Low, e.High)
		}
		before := done
		for _, st := range p.scene.Steps {
			done += p.step(st)
		}
		done = max(done, before+1)
	}
	return done
}

// step plans one step. It returns how many exchanges, or pauses, it is.
func (p *planner) step(st scene.Step) int {
	l := callee.Line{Think: st.Think, Wait: st.Wait, Ends: st.Ends, Press: st.Press, Hangup: st.HangUp, Unanswered: !st.IsAnswered()}
	if st.Into != nil {
		l.Into = p.Between(st.Into.Low, st.Into.High)
	}
	x := move{answer: st.IsAnswered(), keys: st.Press}
	switch {
	case st.Cough != nil:
		l.PCM = p.Cough(rate, p.Between(st.Cough.Low, st.Cough.High))
	case st.Beep > 0:
		l.PCM = tone.Sine(rate, int(st.Beep*rate/time.Second), 1000, 0.2)
	case st.Press != "":
		x.text, l.PCM = history.Spoken("", st.Press), make([]int16, 160)
	case st.Wait > 0, st.HangUp:
		l.PCM = make([]int16, 160)
	default:
		x.parts = p.words(st)
		p.voice(&x, &l)
	}
	p.add(x, l)
	switch {
	case st.Draw == "paused":
		return len(x.parts) - 1
	case st.Into == nil && (st.Say != "" || st.Draw != ""):
		return 1
	default:
		return 0
	}
}

// words are those that a step says.
func (p *planner) words(st scene.Step) corpus.Turn {
	few := func(all []string) corpus.Turn { // no line twice on a call, where there are enough of them
		n := p.drawn[st.Draw]
		p.drawn[st.Draw]++
		return corpus.Turn{{Text: all[n%len(all)]}}
	}
	switch st.Draw {
	case "paused":
		return p.Paused()
	case "content":
		return corpus.Turn{{Text: p.Content()}}
	case "command":
		return few(corpus.Commands())
	case "listening":
		return few(corpus.Backchannels())
	case "plain":
		return p.Plain()
	default:
		return corpus.Turn{{Text: st.Say}}
	}
}

// voice has a line's words said.
func (p *planner) voice(x *move, l *callee.Line) {
	x.text = x.parts.Text()
	for _, part := range x.parts {
		pcm, _ := tone.Say(rate, part.Text)
		x.spans = append(x.spans, voice{len(l.PCM), len(l.PCM) + len(pcm), part.Kind})
		l.PCM = append(append(l.PCM, pcm...), make([]int16, int(part.Pause*rate/time.Second))...)
	}
}

func (p *planner) add(x move, l callee.Line) {
	if len(x.spans) == 0 {
		x.spans = []voice{{0, len(l.PCM), ""}}
	}
	x.into, x.sound = l.Into, time.Duration(len(l.PCM))*time.Second/rate
	p.turns, p.lines = append(p.turns, x), append(p.lines, l)
}
