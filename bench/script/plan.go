// Package script makes up what callers do on the calls of a run: what they say, and
// when, from the scenarios of bench/scene and a seed.
package script

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
	"github.com/parley-voice/parley/bench/wording"
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

// Rate is that of lines in Hz.
const Rate = callee.Rate

// ManyWords are the words of answers in which something is to happen.
const ManyWords = 18

// A Move is one line of a callee, and what it is for.
type Move struct {
	Text   string        // its words; empty of a noise
	Parts  corpus.Turn   // with their pauses
	Spans  []Voice       // where it is sound
	Into   time.Duration // said into the answer to the turn before
	Answer bool          // it is to be answered
	Keys   string        // that are pressed, instead
}

// A Voice is a stretch of sound of a line: samples of it, and the pause after.
type Voice struct {
	From, To int
	Kind     corpus.Kind // of the pause; empty after the last
}

// A Call is what a callee does on one call.
type Call struct {
	ID    string
	Name  Name
	Words int // of each answer
	Turns []Move
	Lines []callee.Line
	Echo  time.Duration
	Noise []int16
}

// An Ask says what calls are wanted.
type Ask struct {
	Pauses int // that callers make, at least; the other scenarios are in proportion
	Others int // exchanges of each other scenario; 0 is a twelfth of Pauses
	Seed   uint64
	Only   []Name // scenarios; none for all
	// Scene is played instead of the standard scenarios.
	Scene *scene.Scene
}

// Warm is a call with one exchange, for whoever is to have talked already.
func Warm() *Call {
	x, pcm := Say(corpus.Turn{{Text: "are you open"}})
	x.Answer = true
	return &Call{ID: "warm-up", Name: Plain, Words: wording.Few, Turns: []Move{x}, Lines: []callee.Line{{PCM: pcm}}}
}

// planner makes calls up.
type planner struct {
	*corpus.Speaker
	Call
	scene *scene.Scene
	drawn map[string]int // of the lines that there are few of, by kind
}

// Plan makes up the calls, in the order in which they are placed.
func (o Ask) Plan() ([]Call, error) {
	if o.Scene != nil {
		return o.calls(o.Scene, o.Scene.Exchanges), nil
	}
	others := cmp.Or(o.Others, max(1, o.Pauses/12))
	counts := map[Name]int{Pauses: o.Pauses, Plain: 2 * others, BargeIn: 2 * others, Hangup: max(1, others/2)}
	var all []Call
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
	slices.SortStableFunc(all, func(a, b Call) int { return cmp.Compare(b.length()/int(20*Rate), a.length()/int(20*Rate)) })
	return all, nil
}

// calls are those of a scene with n exchanges, or pauses, in all.
func (o Ask) calls(s *scene.Scene, n int) []Call {
	var all []Call
	for stream := uint64(0); n > 0; stream++ {
		p := planner{
			Speaker: corpus.New(o.Seed, stream<<8|kindOf(Name(s.Kind()))), scene: s, drawn: map[string]int{},
			Call: Call{ID: fmt.Sprintf("%s-%d", s.Name, stream), Name: Name(s.Kind()), Words: s.Words},
		}
		n -= p.fill(s.Each, n)
		if s.Noise != nil {
			p.Noise = noise(s.Noise, p.Rand())
		}
		all = append(all, p.Call)
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
	m := &spoken.Maker{Rate: Rate}
	loud := wordLevel * math.Pow(10, -n.SNR/20)
	pcm := make([]int16, 5*Rate)
	for i, x := range m.Noise(spoken.Kind(n.Kind), len(pcm), rnd) {
		pcm[i] = int16(max(-32768, min(32767, loud*x)))
	}
	return pcm
}

// length is about how many samples the call has.
func (c Call) length() int {
	n := 0
	for _, l := range c.Lines {
		n += len(l.PCM) + 2*Rate
	}
	return n
}

// fill plans up to each exchanges, or pauses, and at most n. It returns how many.
func (p *planner) fill(each, n int) int {
	done := 0
	for done < min(each, n) {
		if e := p.scene.Echo; e != nil {
			p.Echo = p.Between(e.Low, e.High)
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
	x := Move{Answer: st.IsAnswered(), Keys: st.Press}
	switch {
	case st.Cough != nil:
		l.PCM = p.Cough(Rate, p.Between(st.Cough.Low, st.Cough.High))
	case st.Beep > 0:
		l.PCM = tone.Sine(Rate, int(st.Beep*Rate/time.Second), 1000, 0.2)
	case st.Press != "":
		x.Text, l.PCM = history.Spoken("", st.Press), make([]int16, 160)
	case st.Wait > 0, st.HangUp:
		l.PCM = make([]int16, 160)
	default:
		said, pcm := Say(p.words(st))
		x.Text, x.Parts, x.Spans, l.PCM = said.Text, said.Parts, said.Spans, pcm
	}
	p.add(x, l)
	switch {
	case st.Draw == "paused":
		return len(x.Parts) - 1
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

// Say has words said, with their pauses.
func Say(words corpus.Turn) (x Move, pcm []int16) {
	x.Text, x.Parts = words.Text(), words
	for _, part := range words {
		said, _ := tone.Say(Rate, part.Text)
		x.Spans = append(x.Spans, Voice{len(pcm), len(pcm) + len(said), part.Kind})
		pcm = append(append(pcm, said...), make([]int16, int(part.Pause*Rate/time.Second))...)
	}
	return x, pcm
}

func (p *planner) add(x Move, l callee.Line) {
	if len(x.Spans) == 0 {
		x.Spans = []Voice{{0, len(l.PCM), ""}}
	}
	x.Into = l.Into
	p.Turns, p.Lines = append(p.Turns, x), append(p.Lines, l)
}
