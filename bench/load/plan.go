package load

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/eot"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// Options configure Run.
type Options struct {
	Steps  []int         // numbers of concurrent calls, ascending
	Length time.Duration // duration of each step; steps of few calls take up to three times as long
	Hold   time.Duration // length of a call; the next call follows
	Ramp   time.Duration // shortest time over which the calls of a step start
	Settle time.Duration // time after the ramp that is not measured
	// Profile is the file for a CPU profile of the server under the last step's
	// load; "" for none.
	Profile string
	// Child returns a command that runs this program.
	Child    func(ctx context.Context, args ...string) *exec.Cmd
	Bar      func(unit string) func(done, all int)
	Out, Log io.Writer
}

// Check validates the options.
func (o Options) Check() error {
	last := 0
	for _, n := range o.Steps {
		if n <= last || n > most {
			return fmt.Errorf("steps %v: want ascending numbers of calls from 1 to %d", o.Steps, most)
		}
		last = n
	}
	if len(o.Steps) == 0 || o.Length < time.Second || o.Hold < 5*time.Second || o.Ramp < 0 || o.Settle < 0 {
		return fmt.Errorf("steps %v, length %v, hold %v: want at least one step, 1s and 5s", o.Steps, o.Length, o.Hold)
	}
	return nil
}

// most is the maximum of concurrent calls: the number of phone numbers.
const most = 5000

const (
	begins  = 25 // most calls started per second during the ramp
	patient = 3  // steps of few calls take up to this many times as long
	plenty  = 10 // steps with at least this many calls are not lengthened
)

// A plan holds when the calls of a step start and which time is measured. Times are relative to
// the start of the step.
type plan struct {
	calls    int
	ramp     time.Duration
	hold     time.Duration
	from, to time.Duration // time range that is measured
	queued   bool          // each slot has one call, which lasts hold after it was answered
}

func (o Options) plan(calls int) plan {
	p := plan{calls: calls, hold: o.Hold, ramp: max(o.Ramp, time.Duration(calls)*time.Second/begins)}
	p.from = p.ramp + o.Settle
	p.to = p.from + o.Length*time.Duration(min(patient, max(1, plenty/calls)))
	return p
}

// dues returns when the calls of a slot are due. The times do not depend on earlier calls,
// because a load that waits for a slow server would hide the slowness. A slot has one call at a
// time.
func (p plan) dues(slot int) []time.Duration {
	if p.queued {
		return []time.Duration{p.ramp * time.Duration(slot) / time.Duration(p.calls)}
	}
	var all []time.Duration
	for at := p.ramp * time.Duration(slot) / time.Duration(p.calls); at < p.to; at += p.hold {
		all = append(all, at)
	}
	return all
}

// gap is the time between the end of a call and the next one of its slot.
const gap = time.Second

// sure is the end-of-turn probability from which the agent answers a line without an endpointing wait.
const sure = 0.6

// manyLines is more lines than a call has time for.
const manyLines = 24

// sentences returns the lines of the n-th callee. Each clearly ends, so that no answer waits for endpointing.
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

// script returns the lines as audio.
func script(n int) []callee.Line {
	var lines []callee.Line
	for _, text := range sentences(n) {
		pcm, _ := tone.Encode(rate, text)
		lines = append(lines, callee.Line{PCM: pcm})
	}
	return lines
}

const rate = 8000 // Hz

// critical returns how long the fake providers delay an answer: last word, model, voice.
func critical() time.Duration {
	s := fakeprovider.Typical()
	return s.PartialLag + s.FirstToken + s.FirstByte
}

// words is the number of words per answer.
const words = 6

// operator returns the operator's file: default settings, without the analysis after calls.
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
`, providers.Prompt(words), proxy)
}

// number returns the number that the n-th call dials.
func number(n int) string { return fmt.Sprintf("+1202555%04d", n%10000) }

func last4(to string) string { return to[max(0, len(to)-4):] }
