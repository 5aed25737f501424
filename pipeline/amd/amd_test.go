package amd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media/tone"
)

const ms = time.Millisecond

// play sends events and requested timers to a machine for 30 s and returns its actions.
func play(events []Event) (did []string, m *Machine) {
	m = &Machine{}
	timers := []time.Duration{0}
	for len(events) > 0 || len(timers) > 0 {
		var e Event
		slices.Sort(timers)
		if len(timers) > 0 && (len(events) == 0 || timers[0] < events[0].At) {
			e, timers = Event{Kind: Timer, At: timers[0]}, timers[1:]
		} else {
			e, events = events[0], events[1:]
		}
		for _, a := range m.Step(e) {
			switch a.Do {
			case Wake:
				timers = append(timers, max(a.At, e.At))
			case Decide:
				did = append(did, fmt.Sprintf("%s %v", a.Verdict.Party.AnsweredBy(), e.At))
			case Speak:
				did = append(did, fmt.Sprintf("speak %v", e.At))
			case Yield:
				did = append(did, fmt.Sprintf("yield %v", e.At))
			}
		}
	}
	return did, m
}

// speech returns the events of a voice between two times.
func speech(from, to time.Duration) []Event {
	return []Event{{Kind: Voice, At: from + 60*ms, From: from}, {Kind: Silence, At: to + 180*ms, From: to}}
}

func heard(at time.Duration, text string) Event { return Event{Kind: Transcript, At: at, Text: text} }

func signal(at time.Duration, s Signal) Event {
	return Event{Kind: Tone, At: at, From: at - 40*ms, Signal: s}
}

func TestMachine(t *testing.T) {
	for name, c := range map[string]struct {
		events   []Event
		want     string
		evidence string
	}{
		"hello":                   {speech(500*ms, 1000*ms), "human 1.35s, speak 1.35s", "short_greeting"},
		"hello, then goes on":     {append(speech(500*ms, 900*ms), speech(1500*ms, 2500*ms)...), "human 1.25s, speak 1.25s", "short_greeting"},
		"a longer greeting":       {speech(500*ms, 3500*ms), "human 4.05s, speak 4.05s", "greeting_over"},
		"a hint, then screening":  {[]Event{speech(500*ms, 0)[0], heard(2*time.Second, "the person you are calling"), heard(3*time.Second, "the person you are calling uses a screening service"), speech(0, 4*time.Second)[1]}, "voicemail 2s, ivr 3s, speak 5s", "phrase: screening service"},
		"silence":                 {nil, "unknown 1.5s, speak 1.5s", "no_speech"},
		"a machine by its words":  {[]Event{speech(500*ms, 0)[0], heard(2500*ms, "please leave a message"), speech(0, 4*time.Second)[1], signal(5*time.Second, Beep)}, "voicemail 2.5s, voicemail 5s, speak 5s", "beep"},
		"a machine without beep":  {[]Event{speech(500*ms, 0)[0], heard(2500*ms, "Please leave a message."), speech(0, 4*time.Second)[1]}, "voicemail 2.5s, speak 6s", "phrase: leave a message"},
		"a machine by its length": {speech(500*ms, 9*time.Second), "voicemail 6.5s, speak 11s", "long_greeting"},
		"a machine that paused":   {append(speech(500*ms, 1500*ms), speech(2500*ms, 0)[0], heard(4*time.Second, "hi leave your message"), speech(0, 4500*ms)[1], signal(6*time.Second, Beep)), "human 1.85s, speak 1.85s, voicemail 4s, yield 4s, voicemail 6s, speak 6s", "beep"},
		"a menu":                  {[]Event{speech(500*ms, 0)[0], heard(2*time.Second, "for sales press one"), speech(0, 3*time.Second)[1]}, "ivr 2s, speak 4s", "phrase: press one"},
		"screening":               {[]Event{speech(500*ms, 0)[0], heard(2*time.Second, "please state your name after the tone"), speech(0, 3*time.Second)[1]}, "ivr 2s, speak 4s", "phrase: state your name"},
		"a fax answers":           {[]Event{signal(2*time.Second, Called)}, "unknown 1.5s, speak 1.5s, fax 2s, yield 2s", "fax_answer"},
		"a fax calls":             {[]Event{signal(2*time.Second, Calling)}, "unknown 1.5s, speak 1.5s, fax 2s, yield 2s", "fax_calling"},
		"a dead number":           {[]Event{signal(1*time.Second, Special)}, "unknown 1s, speak 5s", "special_information"},
		"a model's opinion":       {append(speech(500*ms, 1000*ms), Event{Kind: Opinion, At: 2 * time.Second, Party: Voicemail, Confidence: 0.9}), "human 1.35s, speak 1.35s, voicemail 2s, yield 2s, speak 3s", "model"},
		"an opinion without any":  {[]Event{{Kind: Opinion, Party: Human}}, "unknown 1.5s, speak 1.5s", "no_speech"},
		"a weak opinion":          {append(speech(500*ms, 1000*ms), Event{Kind: Opinion, At: 2 * time.Second, Party: Voicemail, Confidence: 0.6}), "human 1.35s, speak 1.35s", "short_greeting"},
		"a beep before any words": {[]Event{signal(1*time.Second, Beep)}, "unknown 1.5s, speak 1.5s", "no_speech"},
	} {
		did, m := play(c.events)
		if name == "a dead number" {
			did = did[:1] // nobody is on the line, so only the verdict matters
			c.want = "unknown 1s"
		}
		if got := strings.Join(did, ", "); got != c.want || m.Verdict().Evidence != c.evidence {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got, m.Verdict().Evidence, c.want, c.evidence)
		}
	}
}

func TestPhrases(t *testing.T) {
	for text, want := range map[string]Party{
		"Hello?": Unknown, "Hi, this is Anna speaking.": Unknown, "Leave it to me, who is this?": Unknown, "": Unknown,
		"You have reached Anna's VOICEMAIL.": Voicemail, "Bitte hinterlassen Sie eine Nachricht nach dem Signalton.": Voicemail,
		"Deje un mensaje después de la señal.": Voicemail, "Laissez un message après le bip sonore": Voicemail,
		"Оставьте сообщение после сигнала.": Voicemail, "Сигналдан кейін хабарлама қалдырыңыз.": Voicemail,
		"Қазір жауап бере алмаймын.": Voicemail, "Vous êtes sur le répondeur de Paul.": Voicemail, "Ahora no podemos atender su llamada.": Voicemail,
		"I will be out of the office until Monday.": Voicemail, "She is out of the office, who is calling?": Unknown, "Его нет дома.": Unknown,
		"For sales, press one.": IVR, "Hi, please state your name and I will see if they are available.": Screening,
	} {
		if got, phrase := matchPhrase(text); got != want {
			t.Errorf("%q is %v (%s), want %v", text, got, phrase, want)
		}
	}
}

// TestHints checks that matchHint finds phrases of machines, and not similar words of people.
func TestHints(t *testing.T) {
	for text, want := range map[string]bool{
		"The person you are trying": true, "The person you called is": true, "I'm the person you talked to.": false,
		"Sie haben den Anschluss": true, "El cliente al que": true, "Vous êtes bien chez": true, "Аппарат абонента": true, "Алло, кто это?": false,
	} {
		if got := matchHint(text); (got != "") != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestAnything checks for events in any order that there is a verdict, that Speak and
// Yield alternate, and that confidence never falls.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []Event
		at := time.Duration(0)
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			at += time.Duration(rapid.IntRange(0, 3000).Draw(t, "after")) * ms
			e := Event{Kind: Kind(rapid.IntRange(0, 4).Draw(t, "kind")), At: at, From: at - time.Duration(rapid.IntRange(-10, 300).Draw(t, "back"))*ms}
			e.Text = rapid.SampledFrom([]string{"", "hello", "press one", "after the tone", "state your name"}).Draw(t, "text")
			e.Signal = Signal(rapid.IntRange(0, 6).Draw(t, "signal"))
			e.Party, e.Confidence = Party(rapid.IntRange(0, 5).Draw(t, "party")), rapid.Float64Range(0, 2).Draw(t, "confidence")
			events = append(events, e)
		}
		did, m := play(events)
		speaking := false
		for i, d := range did {
			switch {
			case strings.HasPrefix(d, "yield"):
				if !speaking {
					t.Fatalf("yields without speaking: %v", did[:i+1])
				}
				speaking = false
			case strings.HasPrefix(d, "speak"):
				speaking = true
			}
		}
		if v := m.Verdict(); v.Evidence == "" || v.Confidence <= 0 || v.Confidence > 1 {
			t.Fatalf("%+v after %v", v, did)
		}
	})
}

// line returns audio: "t 1000 200" is a tone of 1000 Hz for 200 ms, "s 100" 100 ms of silence,
// "n 500" noise, and "b 480 620 250" two tones at once.
func line(rate int, script string, hiss float64) []int16 {
	var pcm []int16
	rnd := rand.New(rand.NewPCG(1, 2))
	for part := range strings.SplitSeq(script, ",") {
		var a, b, length float64
		f := strings.Fields(part)
		switch f[0] {
		case "t":
			_, _ = fmt.Sscan(part[strings.Index(part, "t")+1:], &a, &length)
			pcm = append(pcm, tone.Sine(rate, int(length)*rate/1000, a, 0.2)...)
		case "b":
			_, _ = fmt.Sscan(part[strings.Index(part, "b")+1:], &a, &b, &length)
			x, y := tone.Sine(rate, int(length)*rate/1000, a, 0.1), tone.Sine(rate, int(length)*rate/1000, b, 0.1)
			for i := range x {
				pcm = append(pcm, x[i]+y[i])
			}
		case "n":
			_, _ = fmt.Sscan(part[strings.Index(part, "n")+1:], &length)
			for range int(length) * rate / 1000 {
				pcm = append(pcm, int16(3000*rnd.NormFloat64()))
			}
		default:
			_, _ = fmt.Sscan(part[strings.Index(part, "s")+1:], &length)
			pcm = append(pcm, make([]int16, int(length)*rate/1000)...)
		}
	}
	for i := range pcm {
		pcm[i] += int16(hiss * rnd.NormFloat64())
	}
	return pcm
}

func TestBank(t *testing.T) {
	words, _ := tone.Encode(8000, "hello there this is a word or two")
	for name, c := range map[string]struct {
		script string
		want   string // signals and their ends in ms
	}{
		"beep":              {"s 500, t 1000 200, s 300", "beep@700"},
		"low long beep":     {"n 400, t 440 1200, s 300", "beep@1600"},
		"off the grid":      {"n 413, t 1234 333, s 300", "beep@746"},
		"too short":         {"s 500, t 1000 80, s 300", ""},
		"too long":          {"s 500, t 1000 1800, s 300", ""},
		"no silence after":  {"s 500, t 1000 300, n 300, s 300", ""},
		"fax calls":         {"s 500, t 1100 500, s 300", "fax_calling@1000"},
		"fax answers":       {"s 500, t 2100 3000, s 300", "fax_answer@1120"},
		"not in service":    {"s 500, t 950 330, t 1400 330, t 1777 330, s 300", "special_information@1340"},
		"busy":              {"s 500, b 480 620 500, s 500, b 480 620 500, s 500", "busy_tone@2020"},
		"reorder":           {"s 500, b 480 620 250, s 250, b 480 620 250, s 500", "busy_tone@1260"},
		"noise":             {"n 3000", ""},
		"silence":           {"s 3000", ""},
		"two beeps":         {"s 100, t 800 200, s 200, t 800 200, s 200", "beep@300 beep@700"},
		"a digit (5), DTMF": {"s 100, b 770 1336 300, s 200", ""},
	} {
		for _, rate := range []int{8000, 16000} {
			for _, hiss := range []float64{0, 30} {
				var b Bank
				pcm := line(rate, c.script, hiss)
				var got []string
				n := rate / 50
				for at := 0; at+n <= len(pcm); at += n {
					if s, back := b.Frame(pcm[at : at+n]); s != NoSignal {
						end := time.Duration((at+n)*1000/rate)*ms - back
						got = append(got, fmt.Sprintf("%v@%d", s, end.Milliseconds()))
					}
				}
				if !alike(got, strings.Fields(c.want)) {
					t.Errorf("%s at %d Hz, hiss %v: %v, want %s", name, rate, hiss, got, c.want)
				}
			}
		}
	}
	var b Bank
	for at := 0; at+160 <= len(words); at += 160 {
		if s, _ := b.Frame(words[at : at+160]); s != NoSignal {
			t.Errorf("words of tones: %v", s)
		}
	}
}

// alike compares signals; their ends may differ by 40 ms.
func alike(got, want []string) bool {
	return slices.EqualFunc(got, want, func(a, b string) bool {
		x, at, _ := strings.Cut(a, "@")
		y, bt, _ := strings.Cut(b, "@")
		var i, j int
		_, _ = fmt.Sscan(at+" "+bt, &i, &j)
		return x == y && max(i-j, j-i) <= 40
	})
}

func TestBankAllocatesNothing(t *testing.T) {
	var b Bank
	f := tone.Sine(8000, 160, 1000, 0.5)
	if n := testing.AllocsPerRun(100, func() { b.Frame(f) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// TestOddFrames checks that frames of any length and content are accepted.
func TestOddFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Bank
		for range 20 {
			b.Frame(rapid.SliceOfN(rapid.Int16(), 0, 330).Draw(t, "frame"))
		}
	})
}

func BenchmarkBank(b *testing.B) {
	var k Bank
	f := tone.Sine(8000, 160, 1000, 0.5)
	for b.Loop() {
		k.Frame(f)
	}
}
