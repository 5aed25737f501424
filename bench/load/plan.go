package load

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/wording"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/eot"
	"github.com/parley-voice/parley/pipeline/fake"
)

// Options say what is measured.
type Options struct {
	Steps  []int         // calls at a time, from few to many
	Length time.Duration // that each step is measured for; few calls for up to three times as long
	Hold   time.Duration // of a call; then it is placed again
	Ramp   time.Duration // in which the calls of a step begin, at least
	Settle time.Duration // after it, before anything is counted
	// Profile is the file for a CPU profile of the server, taken in a step like
	// the last one; empty for none.
	Profile string
	// Child makes a command of this program.
	Child    func(ctx context.Context, args ...string) *exec.Cmd
	Bar      func(unit string) func(done, all int)
	Out, Log io.Writer
}

// Check says what of the options makes no sense.
func (o Options) Check() error {
	last := 0
	for _, n := range o.Steps {
		if n <= last || n > most {
			return fmt.Errorf("steps %v: want numbers of calls from 1 to %d, each more than the one before", o.Steps, most)
		}
		last = n
	}
	if len(o.Steps) == 0 || o.Length < time.Second || o.Hold < 5*time.Second || o.Ramp < 0 || o.Settle < 0 {
		return fmt.Errorf("steps %v, length %v, hold %v: want one step, 1s and 5s or more", o.Steps, o.Length, o.Hold)
	}
	return nil
}

// most is how many calls may be on at a time: as many as there are numbers.
const most = 5000

// Of a step.
const (
	begins  = 25 // calls that begin in a second, at most, while a step grows
	patient = 3  // times Length that a step of few calls is measured
	plenty  = 10 // calls that are no few
)

// A plan is when a step's calls begin and what is counted, from the step's
// beginning.
type plan struct {
	calls    int
	ramp     time.Duration
	hold     time.Duration
	from, to time.Duration // what is counted
}

func (o Options) plan(calls int) plan {
	p := plan{calls: calls, hold: o.Hold, ramp: max(o.Ramp, time.Duration(calls)*time.Second/begins)}
	p.from = p.ramp + o.Settle
	p.to = p.from + o.Length*time.Duration(min(patient, max(1, plenty/calls)))
	return p
}

// dues are when the calls of one slot are to begin: whatever became of the one
// before, for a load that waits for whoever is slow is none.
func (p plan) dues(slot int) []time.Duration {
	var all []time.Duration
	for at := p.ramp * time.Duration(slot) / time.Duration(p.calls); at < p.to; at += p.hold {
		all = append(all, at)
	}
	return all
}

// gap is how long before its slot's next call a call ends.
const gap = time.Second

// sure is how likely the end of a line must be, for it to be waited for no longer
// than the providers take.
const sure = 0.6

// manyLines are more than a call has time for.
const manyLines = 24

// sentences are what the callee of the n-th call says: such that could not go on,
// so that no answer waits for policy.
func sentences(n int) []string {
	speaker := corpus.New(corpus.HeldOut, uint64(n)) //nolint:gosec // small
	var all []string
	for len(all) < manyLines {
		text := speaker.Plain().Text()
		if g := (eot.Pause{Text: text, Language: "en"}).Guess(); g.P >= sure && !g.Dictation {
			all = append(all, text)
		}
	}
	return all
}

// script is how they sound.
func script(n int) []callee.Line {
	var lines []callee.Line
	for _, text := range sentences(n) {
		pcm, _ := tone.Say(rate, text)
		lines = append(lines, callee.Line{PCM: pcm})
	}
	return lines
}

const rate = 8000 // Hz

// critical is what the script of the fakes takes from the caller's last sound to
// the agent's first: the last word's text, the model, the voice.
func critical() time.Duration {
	s := fake.Typical()
	return s.PartialLag + s.FirstToken + s.FirstByte
}

// words of an answer.
const words = 6

// operator is what the server's operator wrote down: as it ships, but for the
// analysis, which comes after the call.
func operator(proxy string) string {
	return fmt.Sprintf(`
organizations:
- name: bench
  agents:
  - {name: bench, published: true, greeting: "hello", prompt: %q, voicemail: continue, analysis: {summary: false, success: false},
     speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: fake}}}
  trunks:
  - name: bench
    proxy: %q
    caller_numbers: ["+12025550100"]
    subgroups: [{name: all, allowed_destinations: ["1"], agents: [bench], concurrent_calls: 100000, calls_per_minute: 100000}]
`, wording.Instructions(words), proxy)
}

// number is the one that the n-th call dials, and which is the call of a number.
func number(n int) string { return fmt.Sprintf("+1202555%04d", n%10000) }

func last4(to string) string { return to[max(0, len(to)-4):] }
