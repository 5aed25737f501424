// Package amd measures answering machine detection: how often it is right, how fast it is, and
// when the agent speaks. Its input is synthetic greetings of people and machines, in many voices,
// with telephone line quality.
package amd

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/bench/audiogen"
	measured "github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline/amd"
	"github.com/parley-voice/parley/pipeline/vad"
)

const (
	rate          = 8000
	lag           = 300 * time.Millisecond // delay of a transcript after its word
	afterGreeting = 12 * time.Second       // time of the recording after the greeting
)

// A sentence is a text and its position in a recording.
type sentence struct {
	text     string
	from, to time.Duration
}

// A call is one recording with the expected result.
type call struct {
	class class
	voice string
	pcm   []int16
	said  []sentence
	beep  time.Duration // end of the beep; 0 if there is none
}

// end returns the end of the first greeting. A pause of more than 700 ms ends a greeting.
func (c *call) end() time.Duration {
	end := time.Duration(0)
	for i, s := range c.said {
		if i > 0 && s.from-end > 700*time.Millisecond {
			break
		}
		end = s.to
	}
	return end
}

// record synthesizes a script: sentences with pauses, over line noise. Bars separate the sentences.
func record(ctx context.Context, c class, v audiogen.Voice, script string, rnd *rand.Rand) (*call, error) {
	k := &call{class: c, voice: v.Name}
	var pcm []int16
	pause := func(least, most int) {
		pcm = append(pcm, make([]int16, (least+rnd.IntN(most-least+1))*rate/1000)...)
	}
	now := func() time.Duration { return time.Duration(len(pcm)) * time.Second / rate }
	pause(300, 1200)
	for i, text := range strings.Split(script, "|") {
		if text == "" {
			continue
		}
		if i > 0 {
			pause(150, 450)
		}
		sound, err := audiogen.Say(ctx, v, text, rate)
		if err != nil {
			return nil, err
		}
		from := now()
		pcm = append(pcm, sound...)
		k.said = append(k.said, sentence{text, from, now()})
	}
	switch c {
	case machineBeep:
		pause(300, 1200)
		pcm = append(pcm, tone.Sine(rate, rate*(150+rnd.IntN(700))/1000, 440+1000*rnd.Float64(), 0.2)...)
		k.beep = now()
	case fax:
		if rnd.IntN(2) == 0 {
			pcm = append(pcm, tone.Sine(rate, 3*rate, 2100, 0.2)...)
		} else {
			for range 3 {
				pcm = append(pcm, tone.Sine(rate, rate/2, 1100, 0.2)...)
				pause(3000, 3000)
			}
		}
	default:
	}
	pcm = append(pcm, make([]int16, int(afterGreeting.Seconds()*rate))...)
	for i := range pcm {
		pcm[i] = int16(max(-32768, min(32767, 0.6*float64(pcm[i])+18*rnd.NormFloat64())))
	}
	k.pcm = audiogen.Phone(pcm)
	return k, nil
}

// An outcome is the result of one call.
type outcome struct {
	verdict amd.Verdict
	effect  time.Duration   // when a verdict on a machine first took effect; 0 if never
	speaks  []time.Duration // when the agent may speak
	yields  int
}

func (r *outcome) onVerdict(at time.Duration, v amd.Verdict) {
	if r.effect == 0 && takesEffect(v) {
		r.effect = at
	}
}

// takesEffect reports whether the agent hangs up on v at once, unless its settings say otherwise.
func takesEffect(v amd.Verdict) bool {
	return v.Party == amd.Voicemail && v.Confidence >= 0.8 || v.Party == amd.IVR || v.Party == amd.Fax
}

// listen runs answering machine detection on a call, with or without transcripts.
func (c *call) listen(transcribed bool) outcome {
	var r outcome
	var d vad.Detector
	var b amd.Bank
	var m amd.Machine
	timers := []time.Duration{0}
	step := func(e amd.Event) {
		for _, a := range m.Step(e) {
			switch a.Do {
			case amd.Wake:
				timers = append(timers, a.At)
			case amd.Speak:
				r.speaks = append(r.speaks, e.At)
			case amd.Yield:
				r.yields++
			case amd.Decide:
				r.onVerdict(e.At, a.Verdict)
			}
		}
	}
	var heard []sentence
	if transcribed {
		heard = c.words()
	}
	for i := range len(c.pcm) / 160 {
		now := time.Duration(i+1) * media.FrameTime
		f := media.Frame(c.pcm[i*160 : (i+1)*160])
		verdict, back := d.Frame(f)
		edge := now - time.Duration(back)*media.FrameTime
		switch verdict {
		case vad.SpeechStart:
			step(amd.Event{Kind: amd.Voice, At: now, From: edge - media.FrameTime})
		case vad.SpeechEnd:
			step(amd.Event{Kind: amd.Silence, At: now, From: edge})
		default:
		}
		if s, ago := b.Frame(f); s != amd.NoSignal {
			step(amd.Event{Kind: amd.Tone, At: now, From: now - ago, Signal: s})
		}
		for len(heard) > 0 && heard[0].to <= now {
			step(amd.Event{Kind: amd.Transcript, At: now, Text: heard[0].text})
			heard = heard[1:]
		}
		waiting := len(timers)
		timers = slices.DeleteFunc(timers, func(t time.Duration) bool { return t <= now })
		if len(timers) < waiting {
			step(amd.Event{Kind: amd.Timer, At: now})
		}
	}
	r.verdict = m.Verdict()
	return r
}

// words returns the interim transcripts and their times. Each has all words so far. The words of
// a sentence are evenly distributed over its time.
func (c *call) words() []sentence {
	var all []sentence
	var text strings.Builder
	for _, s := range c.said {
		words := strings.Fields(s.text)
		for i, w := range words {
			text.WriteString(w + " ")
			at := s.from + (s.to-s.from)*time.Duration(i+1)/time.Duration(len(words)) + lag
			all = append(all, sentence{text: text.String(), to: at})
		}
	}
	return all
}

// HeldOut is the seed of the published figures.
const HeldOut uint64 = 5

// Options configure Run.
type Options struct {
	Takes    int    // recordings per script and voice
	Seed     uint64 // seed of the pauses, hiss and beeps
	Progress func(done, all int)
	Result   *measured.File // receives the metrics
}

// Run measures and writes tables to out.
func Run(ctx context.Context, out io.Writer, o Options) error {
	rnd := rand.New(rand.NewPCG(o.Seed, 6)) //nolint:gosec // repeatable on purpose
	voices := audiogen.Voices()
	var t, deaf tally
	for i, v := range voices {
		for _, c := range classes() {
			for _, script := range scripts(c, v.Language) {
				for range o.Takes {
					k, err := record(ctx, c, v, script, rnd)
					if err != nil {
						return err
					}
					t.add(k, k.listen(true))
					deaf.add(k, k.listen(false))
				}
			}
		}
		o.Progress(i+1, len(voices))
	}
	t.addMetrics(o.Result)
	if err := t.write(out); err != nil {
		return err
	}
	fmt.Fprint(out, "\nWithout transcripts (timing and tones only):\n\n")
	return deaf.write(out)
}

// A tally counts the outcomes of all calls.
type tally struct {
	confusion [7][6]int
	lost      [7]int // for people: calls on which the agent hangs up, because it takes the person for a machine
	verdict   [7][]time.Duration
	effect    [7][]time.Duration // for machines: when the verdict took effect
	word      [7][]time.Duration // for people: from the end of the greeting to the agent's first word
	early     [7]int             // number of calls in which the agent spoke before the end of the greeting
	yielded   [7]int
	beep      []time.Duration
	noBeep    int
}

func (t *tally) add(k *call, r outcome) {
	c := k.class
	t.confusion[c][r.verdict.Party]++
	t.verdict[c] = append(t.verdict[c], r.verdict.Elapsed)
	if isMachine := r.verdict.Party != amd.Human && r.verdict.Party != amd.Unknown; isMachine || r.effect > 0 {
		t.lost[c]++
	}
	if r.effect > 0 {
		t.effect[c] = append(t.effect[c], r.effect)
	}
	if r.yields > 0 {
		t.yielded[c]++
	}
	switch {
	case c.human() && len(r.speaks) > 0:
		if d := r.speaks[0] - k.end(); d < 0 {
			t.early[c]++
		} else {
			t.word[c] = append(t.word[c], d)
		}
	case c == machineBeep:
		at := slices.IndexFunc(r.speaks, func(s time.Duration) bool { return s >= k.beep })
		if at < 0 || r.speaks[len(r.speaks)-1] < k.beep {
			t.noBeep++
			return
		}
		t.beep = append(t.beep, r.speaks[at]-k.beep)
	}
}

// addMetrics adds the metrics to f: the agent's first word for people, the verdict and
// the message for machines.
func (t *tally) addMetrics(f *measured.File) {
	var words, verdicts, effects []time.Duration
	people, early, suspected, machines, mistaken := 0, 0, 0, 0, 0
	for _, c := range classes() {
		n := len(t.verdict[c])
		switch {
		case c.human():
			words, people, early = append(words, t.word[c]...), people+n, early+t.early[c]
			suspected += t.lost[c]
		case c == machineBeep || c == machineMute:
			verdicts, effects = append(verdicts, t.verdict[c]...), append(effects, t.effect[c]...)
			machines, mistaken = machines+n, mistaken+t.confusion[c][amd.Human]
		}
	}
	f.Add(measured.Spread("human_first_word_ms", "end of a person's greeting → agent's first word", "ms", millis(words),
		measured.Most("p50", 700)))
	f.Add(measured.Share("human_early", "agent spoke before the end of a person's greeting", early, people))
	f.Add(measured.Share("human_machine",
		"people taken for machines: the final verdict, or an earlier one that could have made the agent hang up", suspected, people))
	f.Add(measured.Spread("machine_verdict_ms", "time to classify a machine", "ms", millis(verdicts), measured.Most("p50", 2000),
		measured.Most("p95", 4000)))
	f.Add(measured.Spread("machine_effect_ms",
		"time until the verdict makes an agent hang up on a machine, if its settings allow that", "ms", millis(effects)))
	f.Add(measured.Share("machine_human", "machines classified as people", mistaken, machines))
	f.Add(measured.Spread("after_beep_ms", "end of the beep → first word of the message", "ms", millis(t.beep), measured.Most("p95", 120)))
	f.Add(measured.Share("beep_missed", "missed beeps", t.noBeep, t.noBeep+len(t.beep)))
}

func millis(all []time.Duration) []float64 {
	var values []float64
	for _, d := range all {
		values = append(values, float64(d)/float64(time.Millisecond))
	}
	return values
}

func (t *tally) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "answered by\tcalls\thuman\tvoicemail\tivr\tscreening\tfax\tunknown\tverdict p50\tp95\trevised\t")
	for _, c := range classes() {
		n := t.confusion[c]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t\n", c, len(t.verdict[c]),
			n[amd.Human], n[amd.Voicemail], n[amd.IVR], n[amd.Screening], n[amd.Fax], n[amd.Unknown],
			quantile(t.verdict[c], .5), quantile(t.verdict[c], .95), t.yielded[c])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, c := range classes() {
		if c.human() {
			fmt.Fprintf(out, "%s: agent speaks %s (p50), %s (p95), %s (max) after the greeting; in %d of %d calls before its end\n",
				c, quantile(t.word[c], .5), quantile(t.word[c], .95), quantile(t.word[c], 1), t.early[c], len(t.verdict[c]))
			if t.lost[c] > 0 {
				fmt.Fprintf(out, "%s: %d of %d people taken for machines\n", c, t.lost[c], len(t.verdict[c]))
			}
		}
	}
	for _, c := range []class{machineBeep, machineMute} {
		fmt.Fprintf(out, "%s: verdict takes effect at %s (p50), %s (p95)\n", c, quantile(t.effect[c], .5), quantile(t.effect[c], .95))
	}
	_, err := fmt.Fprintf(out, "%s: message starts %s (p50), %s (p95), %s (max) after the beep; %d beeps missed\n",
		machineBeep, quantile(t.beep, .5), quantile(t.beep, .95), quantile(t.beep, 1), t.noBeep)
	return err
}

func quantile(d []time.Duration, p float64) string {
	if len(d) == 0 {
		return "–"
	}
	slices.Sort(d)
	return fmt.Sprintf("%d ms", d[min(len(d)-1, int(p*float64(len(d))))].Milliseconds())
}
