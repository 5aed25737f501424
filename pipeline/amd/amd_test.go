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
		"hello":                    {speech(500*ms, 1000*ms), "human 1.35s, speak 1.35s", "short_greeting"},
		"hello, then more speech":  {append(speech(500*ms, 900*ms), speech(1500*ms, 2500*ms)...), "human 1.25s, speak 1.25s", "short_greeting"},
		"a longer greeting":        {speech(500*ms, 3500*ms), "human 4.05s, speak 4.05s", "greeting_over"},
		"a hint, then screening":   {[]Event{speech(500*ms, 0)[0], heard(2*time.Second, "the person you are calling"), heard(3*time.Second, "the person you are calling uses a screening service"), speech(0, 4*time.Second)[1]}, "voicemail 2s, ivr 3s, speak 5s", "phrase: screening service"},
		"silence":                  {nil, "unknown 1.5s, speak 1.5s", "no_speech"},
		"a machine by its words":   {[]Event{speech(500*ms, 0)[0], heard(2500*ms, "please leave a message"), speech(0, 4*time.Second)[1], signal(5*time.Second, Beep)}, "voicemail 2.5s, voicemail 5s, speak 5s", "beep"},
		"a machine without beep":   {[]Event{speech(500*ms, 0)[0], heard(2500*ms, "Please leave a message."), speech(0, 4*time.Second)[1]}, "voicemail 2.5s, speak 6s", "phrase: leave a message"},
		"a machine by its length":  {speech(500*ms, 9*time.Second), "voicemail 6.5s, speak 11s", "long_greeting"},
		"a machine that paused":    {append(speech(500*ms, 1500*ms), speech(2500*ms, 0)[0], heard(4*time.Second, "hi leave your message"), speech(0, 4500*ms)[1], signal(6*time.Second, Beep)), "human 1.85s, speak 1.85s, voicemail 4s, yield 4s, voicemail 6s, speak 6s", "beep"},
		"first words of a machine": {[]Event{speech(500*ms, 0)[0], heard(1100*ms, "Your call"), heard(1500*ms, "Your call has"), speech(0, 4*time.Second)[1]}, "voicemail 1.1s, voicemail 1.5s, speak 6s", "phrase: your call has"},
		"first words, no more":     {[]Event{speech(500*ms, 0)[0], heard(1100*ms, "Hi, you"), speech(0, 1300*ms)[1]}, "voicemail 1.1s, human 2.3s, speak 2.3s", "greeting_over"},
		"a reception":              {[]Event{speech(500*ms, 0)[0], heard(1500*ms, "Good morning, you have reached"), heard(3*time.Second, "Good morning, you have reached Oak Inn, how can I help"), speech(0, 3*time.Second)[1]}, "voicemail 1.5s, human 3s, speak 3.35s", "phrase: how can i help"},
		"corrected first words":    {[]Event{speech(500*ms, 0)[0], heard(1100*ms, "The person"), heard(1400*ms, "The Parsons' house"), speech(0, 1500*ms)[1]}, "voicemail 1.1s, human 1.85s, speak 1.85s", "short_greeting"},
		"a menu":                   {[]Event{speech(500*ms, 0)[0], heard(2*time.Second, "for sales press one"), speech(0, 3*time.Second)[1]}, "ivr 2s, speak 4s", "phrase: press one"},
		"screening":                {[]Event{speech(500*ms, 0)[0], heard(2*time.Second, "please state your name after the tone"), speech(0, 3*time.Second)[1]}, "ivr 2s, speak 4s", "phrase: state your name"},
		"a fax answers":            {[]Event{signal(2*time.Second, Called)}, "unknown 1.5s, speak 1.5s, fax 2s, yield 2s", "fax_answer"},
		"a fax calls":              {[]Event{signal(2*time.Second, Calling)}, "unknown 1.5s, speak 1.5s, fax 2s, yield 2s", "fax_calling"},
		"a dead number":            {[]Event{signal(1*time.Second, Special)}, "unknown 1s, speak 5s", "special_information"},
		"a model's opinion":        {append(speech(500*ms, 1000*ms), Event{Kind: Opinion, At: 2 * time.Second, Party: Voicemail, Confidence: 0.9}), "human 1.35s, speak 1.35s, voicemail 2s, yield 2s, speak 3s", "model"},
		"an undecided opinion":     {[]Event{{Kind: Opinion, Party: Human}}, "unknown 1.5s, speak 1.5s", "no_speech"},
		"a weak opinion":           {append(speech(500*ms, 1000*ms), Event{Kind: Opinion, At: 2 * time.Second, Party: Voicemail, Confidence: 0.6}), "human 1.35s, speak 1.35s", "short_greeting"},
		"a beep before any words":  {[]Event{signal(1*time.Second, Beep)}, "unknown 1.5s, speak 1.5s", "no_speech"},
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

// TestText checks the party and the confidence of the first words of a call.
func TestText(t *testing.T) {
	for text, want := range map[string]struct {
		party      Party
		confidence float64
	}{
		"": {}, "Hello?": {}, "Hi, this is Anna speaking.": {}, "Leave it to me, who are you?": {}, "Алло, сіз кімсіз?": {},
		"I'm the person you talked to.": {}, "Is the number you have right?": {}, "She is out of the office.": {}, "Его нет дома.": {},
		"Good morning, Smith and Sons, this is Anna": {}, "Thank you for calling Oak Street Garage": {},
		"Hello, Anna's phone, she is in the kitchen": {}, "Алло, бұл Асқардың телефоны": {},

		"Smith and Sons, this is Anna, how can I help you?":                    {Human, person},
		"You have reached the front desk, this is Daniel, how may I help":      {Human, person},
		"Guten Tag, Sie haben die Firma Brandt erreicht, was kann ich für Sie": {Human, person},
		"Buenas tardes, ¿en qué puedo ayudarle?":                               {Human, person},
		"Bonjour, vous êtes bien au cabinet Martin, que puis-je faire":         {Human, person},
		"Вы позвонили в клинику, чем могу помочь?":                             {Human, person},
		"Алматы дүкені, қалай көмектесейін?":                                   {Human, person},

		"You":                                 {Voicemail, possible},
		"Hi, you have":                        {Voicemail, possible},
		"The person":                          {Voicemail, possible},
		"Your call":                           {Voicemail, possible},
		"Hallo, sie haben":                    {Voicemail, possible},
		"The number you have can't be right.": {Voicemail, possible}, "El teléfono": {Voicemail, possible},
		"Bonjour, vous":   {Voicemail, possible},
		"Добрый день, вы": {Voicemail, possible},
		"Сіз":             {Voicemail, possible},
		"Good morning, you have reached Oak Street Garage": {Voicemail, possible},
		"Bonjour, vous êtes bien au cabinet Martin":        {Voicemail, possible},
		"Здравствуйте, вы позвонили":                       {Voicemail, possible},
		"Здравствуйте, вы позвонили в клинику":             {Voicemail, possible},
		"Сәлеметсіз бе, бұл Асқардың телефоны":             {Voicemail, possible},
		"Hi, it's Bob, leave a":                            {Voicemail, possible},
		"Hey, it's Mike. You know what":                    {Voicemail, possible},
		"Hello, this is Sarah. I'm not":                    {Voicemail, possible},
		"Hi, it's Bob, please leave":                       {Voicemail, possible},
		"Salut, c'est Julien, laisse un":                   {Voicemail, possible},
		"Hola, soy Marta, deja tu":                         {Voicemail, possible},
		"Hi, hier ist Jonas, sprich mir":                   {Voicemail, possible},

		"Hi, you have reached":         {Voicemail, likely},
		"You've reached":               {Voicemail, likely},
		"The person you":               {Voicemail, likely},
		"Your call has":                {Voicemail, likely},
		"Sie haben den Anschluss":      {Voicemail, likely},
		"Der Teilnehmer":               {Voicemail, likely},
		"El cliente al que":            {Voicemail, likely},
		"Bonjour, vous êtes bien chez": {Voicemail, likely},
		"Здравствуйте, вы позвонили Ивану": {Voicemail, likely},
		"Аппарат абонента":                 {Voicemail, likely},
		"Сіз қоңырау шалған абонент":       {Voicemail, likely},
		"Hi, the person you":               {Screening, possible},

		"You have reached Anna's VOICEMAIL.":                                     {Voicemail, certain},
		"Bitte hinterlassen Sie eine Nachricht nach dem Signalton.":              {Voicemail, certain},
		"Deje un mensaje después de la señal.":                                   {Voicemail, certain},
		"Laissez un message après le bip sonore":                                 {Voicemail, certain},
		"Оставьте сообщение после сигнала.":                                      {Voicemail, certain},
		"Сигналдан кейін хабарлама қалдырыңыз.":                                  {Voicemail, certain},
		"Қазір жауап бере алмаймын.":                                             {Voicemail, certain},
		"Vous êtes sur le répondeur de Paul.":                                    {Voicemail, certain},
		"Ahora no podemos atender su llamada.":                                   {Voicemail, certain},
		"I will be out of the office until Monday.":                              {Voicemail, certain},
		"For sales, press one.":                                                  {IVR, certain},
		"Hi, please state your name and I will see if they are available.":       {Screening, certain},
		"Hi, the person you are calling is using a screening service":            {Screening, certain},
		"You have reached Bob, how can I help you? Leave a message, that's how.": {Voicemail, certain},
	} {
		if p, confidence, phrase := matchText(text, false); p != want.party || confidence != want.confidence {
			t.Errorf("%q is %v, %v (%s), want %v, %v", text, p, confidence, phrase, want.party, want.confidence)
		}
	}
}

// TestTextOfPerson checks that the first words of a machine do not count after a person has waited for an answer, but
// that a complete phrase does.
func TestTextOfPerson(t *testing.T) {
	for text, want := range map[string]float64{
		"Hello? You": 0, "Hello? Your call": 0, "Hi, it's Bob. I'm not sure.": 0,
		"Good morning. You have reached": likely, "Hi, it's Bob. Leave a": likely, "Hello. The person you": likely, "Hi, leave a message": certain,
	} {
		if p, confidence, phrase := matchText(text, true); confidence != want {
			t.Errorf("%q is %v, %v (%s), want %v", text, p, confidence, phrase, want)
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
