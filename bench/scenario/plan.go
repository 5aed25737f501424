package scenario

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/parley-voice/parley/bench/audiogen"
	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/conversation"
)

// A Name names a standard scenario.
type Name string

// Standard scenarios.
const (
	Plain       Name = "plain"       // a sentence without a pause
	Pauses      Name = "pauses"      // a sentence with pauses
	BargeIn     Name = "barge-in"    // a command or a sentence during the answer
	Backchannel Name = "backchannel" // a backchannel during the answer
	Cough       Name = "cough"       // a cough during the answer
	Resume      Name = "resume"      // a noise during the answer, long enough to sound like speech
	Echo        Name = "echo"        // the agent's audio comes back as an echo
	Hangup      Name = "hang-up"     // the callee hangs up during the answer
)

// Rate is the sample rate of lines in Hz.
const Rate = callee.Rate

// ManyWords is the length, in words, of answers that callers interrupt.
const ManyWords = 18

// An Utterance is one line of a callee, with the expected reaction.
type Utterance struct {
	Text   string        // words of the line; empty for a noise
	Parts  corpus.Turn   // words with pauses
	Spans  []Span        // spans of audio
	Into   time.Duration // how long after the start of the previous answer the line starts; 0 waits for its end
	Answer bool          // an answer is expected
	Keys   string        // DTMF keys that are pressed instead of speech
}

// A Span is a range of samples of a line, and the kind of pause after it.
type Span struct {
	From, To int
	Kind     corpus.Kind // kind of the pause; empty after the last span
}

// A Call is the behavior of a callee on one call.
type Call struct {
	ID    string
	Name  Name
	Words int // words per answer
	Turns []Utterance
	Lines []callee.Line
	Echo  time.Duration
	Noise []int16
}

// PlanOptions select the calls to plan.
type PlanOptions struct {
	Pauses int // minimum total number of pauses; the other scenarios scale with it
	Others int // exchanges per other scenario; 0 means a twelfth of Pauses
	Seed   uint64
	Only   []Name // scenarios to plan; none means all
	// Scenario replaces the standard scenarios.
	Scenario *Scenario
}

// Warm returns a warm-up call with one exchange.
func Warm() *Call {
	x, pcm := Say(corpus.Turn{{Text: "are you open"}})
	x.Answer = true
	return &Call{ID: "warm-up", Name: Plain, Words: providers.ShortReply, Turns: []Utterance{x}, Lines: []callee.Line{{PCM: pcm}}}
}

type planner struct {
	*corpus.Speaker
	Call
	scene *Scenario
	drawn map[string]int // how many lines each kind of Step.Draw has used
}

// Plan returns the calls in the order in which they start.
func (o PlanOptions) Plan() ([]Call, error) {
	if o.Scenario != nil {
		return o.calls(o.Scenario, o.Scenario.Exchanges), nil
	}
	others := cmp.Or(o.Others, max(1, o.Pauses/12))
	counts := map[Name]int{Pauses: o.Pauses, Plain: 2 * others, BargeIn: 2 * others, Hangup: max(1, others/2)}
	var all []Call
	names := []Name{Pauses, Plain, BargeIn, Backchannel, Cough, Resume, Echo, Hangup}
	for _, name := range o.Only {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--only %q: accepted are %v; use --scenario for others", name, names)
		}
	}
	for _, name := range names {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			continue
		}
		s, err := Find(string(name))
		if err != nil {
			return nil, err
		}
		all = append(all, o.calls(s, cmp.Or(counts[name], others))...)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0)) //nolint:gosec // repeatable on purpose
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	// The longest calls come first, so that no long call runs alone at the end.
	slices.SortStableFunc(all, func(a, b Call) int { return cmp.Compare(b.length()/int(20*Rate), a.length()/int(20*Rate)) })
	return all, nil
}

// calls plans the calls of a scenario with n exchanges or pauses in total.
func (o PlanOptions) calls(s *Scenario, n int) []Call {
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

// kindOf returns a number that gives each standard scenario its own random stream.
func kindOf(n Name) uint64 {
	return uint64(slices.Index([]Name{Plain, Pauses, BargeIn, Backchannel, Cough, Resume, Echo, Hangup}, n)) //nolint:gosec // one of them
}

// wordLevel is the root mean square of tone words.
const wordLevel = 0.25 * 32767

// noise returns five seconds of noise.
func noise(n *Noise, rnd *rand.Rand) []int16 {
	m := &audiogen.Maker{Rate: Rate}
	loud := wordLevel * math.Pow(10, -n.SNR/20)
	pcm := make([]int16, 5*Rate)
	for i, x := range m.Noise(audiogen.Kind(n.Kind), len(pcm), rnd) {
		pcm[i] = int16(max(-32768, min(32767, loud*x)))
	}
	return pcm
}

// length returns the approximate length of the call in samples.
func (c Call) length() int {
	n := 0
	for _, l := range c.Lines {
		n += len(l.PCM) + 2*Rate
	}
	return n
}

// fill plans one call with at least min(each, n) exchanges or pauses and returns their number.
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

// step plans one step and returns how many exchanges or pauses it has.
func (p *planner) step(st Step) int {
	l := callee.Line{Think: st.Think, Wait: st.Wait, Ends: st.Ends, Press: st.Press, Hangup: st.HangUp, Unanswered: !st.IsAnswered()}
	if st.Into != nil {
		l.Into = p.Between(st.Into.Low, st.Into.High)
	}
	x := Utterance{Answer: st.IsAnswered(), Keys: st.Press}
	switch {
	case st.Cough != nil:
		l.PCM = p.Cough(Rate, p.Between(st.Cough.Low, st.Cough.High))
	case st.Beep > 0:
		l.PCM = tone.Sine(Rate, int(st.Beep*Rate/time.Second), 1000, 0.2)
	case st.Press != "":
		x.Text, l.PCM = conversation.CallerLine("", st.Press), make([]int16, 160)
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

// words returns the words of a step.
func (p *planner) words(st Step) corpus.Turn {
	few := func(all []string) corpus.Turn { // takes the next line, so that no line is repeated soon
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

// Say returns the utterance of words and its audio.
func Say(words corpus.Turn) (x Utterance, pcm []int16) {
	x.Text, x.Parts = words.Text(), words
	for _, part := range words {
		said, _ := tone.Encode(Rate, part.Text)
		x.Spans = append(x.Spans, Span{len(pcm), len(pcm) + len(said), part.Kind})
		pcm = append(append(pcm, said...), make([]int16, int(part.Pause*Rate/time.Second))...)
	}
	return x, pcm
}

func (p *planner) add(x Utterance, l callee.Line) {
	if len(x.Spans) == 0 {
		x.Spans = []Span{{0, len(l.PCM), ""}}
	}
	x.Into = l.Into
	p.Turns, p.Lines = append(p.Turns, x), append(p.Lines, l)
}
