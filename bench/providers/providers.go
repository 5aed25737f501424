// Package providers plays recognizers, models and voices on ports of their own,
// by the wire protocols of the real ones, with delays and faults that follow a
// script: any voice system can be pointed at them.
package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/strict"
	"github.com/parley-voice/parley/pipeline/fake"
)

// A Script says how the providers behave. It has the keys of its file.
type Script struct {
	Recognizer Recognizer `yaml:"recognizer"`
	Model      Model      `yaml:"model"`
	Voice      Voice      `yaml:"voice"`
	Faults     []Fault    `yaml:"faults"`
}

// A Recognizer understands tone words.
type Recognizer struct {
	Partial time.Duration `yaml:"partial"` // end of a word to the interim result that holds it
	Final   time.Duration `yaml:"final"`   // request to the final result
}

// A Model answers.
type Model struct {
	FirstToken time.Duration `yaml:"first_token"`
	Token      time.Duration `yaml:"token"` // between two
}

// A Voice speaks tone words.
type Voice struct {
	FirstAudio time.Duration `yaml:"first_audio"`
	Silence    time.Duration `yaml:"silence"` // that it begins with
}

// A Fault is what goes wrong with some requests of a provider. A connection of
// a recognizer, and an utterance of a voice, is one request.
type Fault struct {
	Provider fake.Provider `yaml:"provider"`
	Fault    fake.Fault    `yaml:"fault"`
	First    int           `yaml:"first"` // request that it happens to, from 1; 0 is 1
	Every    int           `yaml:"every"` // and every so many after it; 0 is every one
	Times    int           `yaml:"times"` // at most; 0 is without end
	// By is how late what is late or slow comes; 0 is 3 s. It is one for all.
	By time.Duration `yaml:"by"`
}

// Typical has the delays that the targets are set for, and no faults.
func Typical() Script {
	s := fake.Typical()
	return Script{
		Recognizer: Recognizer{Partial: s.PartialLag, Final: s.FinalLag},
		Model:      Model{FirstToken: s.FirstToken, Token: s.TokenGap},
		Voice:      Voice{FirstAudio: s.FirstByte},
	}
}

// Read reads the script of a file. What it leaves out is as Typical has it.
func Read(name string) (Script, error) {
	s := Typical()
	b, err := os.ReadFile(name) //nolint:gosec // the user's own
	if err != nil {
		return s, err
	}
	if err = strict.Read(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// ParseFault reads a fault as a command line has it: "llm=slow",
// "asr=late,first=2,every=5,times=3,by=2s".
func ParseFault(text string) (Fault, error) {
	var f Fault
	wrong := func(what string) (Fault, error) {
		return f, fmt.Errorf("fault %q: %s: want PROVIDER=FAULT and then any of ,first=N ,every=N ,times=N ,by=TIME", text, what)
	}
	head, rest, more := strings.Cut(text, ",")
	provider, what, ok := strings.Cut(head, "=")
	if !ok {
		return wrong("no fault of a provider")
	}
	f.Provider, f.Fault = fake.Provider(provider), fake.Fault(what)
	for more {
		var option string
		option, rest, more = strings.Cut(rest, ",")
		key, value, _ := strings.Cut(option, "=")
		var err error
		switch key {
		case "first":
			f.First, err = strconv.Atoi(value)
		case "every":
			f.Every, err = strconv.Atoi(value)
		case "times":
			f.Times, err = strconv.Atoi(value)
		case "by":
			f.By, err = time.ParseDuration(value)
		default:
			return wrong(fmt.Sprintf("unknown %q", key))
		}
		if err != nil {
			return wrong(fmt.Sprintf("%s is %q", key, value))
		}
	}
	return f, nil
}

// Check says what of a script makes no sense.
func (s Script) Check() error {
	for name, d := range map[string]time.Duration{
		"partial": s.Recognizer.Partial, "final": s.Recognizer.Final, "first_token": s.Model.FirstToken, "token": s.Model.Token,
		"first_audio": s.Voice.FirstAudio, "silence": s.Voice.Silence,
	} {
		if d < 0 || d > time.Minute {
			return fmt.Errorf("%s of %v: want 0s to 1m", name, d)
		}
	}
	return Check(s.Faults)
}

// Check says what of some faults makes no sense.
func Check(faults []Fault) error {
	for i, f := range faults {
		if err := f.check(); err != nil {
			return fmt.Errorf("fault %d: %w", i+1, err)
		}
	}
	return nil
}

func (f Fault) check() error {
	switch {
	case !slices.Contains([]fake.Provider{fake.ASR, fake.LLM, fake.TTS}, f.Provider):
		return fmt.Errorf("unknown provider %q: accepted are asr, llm and tts", f.Provider)
	case !slices.Contains(fake.Faults(), f.Fault):
		return fmt.Errorf("unknown fault %q: accepted are %s", f.Fault, list(fake.Faults()))
	case !f.fits():
		return fmt.Errorf("%s of %s: late and mute are of asr, slow is of llm and tts", f.Fault, f.Provider)
	case f.First < 0 || f.Every < 0 || f.Times < 0:
		return errors.New("first, every or times below 0")
	case f.By < 0 || f.By > time.Minute || f.By > 0 && f.Fault != fake.Late && f.Fault != fake.Slow:
		return fmt.Errorf("by %v: want 0s to 1m, of late and slow alone", f.By)
	}
	return nil
}

// fits tells whether the provider can have the fault.
func (f Fault) fits() bool {
	switch f.Fault {
	case fake.Late, fake.Mute:
		return f.Provider == fake.ASR
	case fake.Slow:
		return f.Provider != fake.ASR
	default:
		return true
	}
}

func list(all []fake.Fault) string {
	var names []string
	for _, f := range all {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// hits tells whether the fault happens to request n of its provider, from 0.
func (f Fault) hits(n int) bool {
	n -= max(1, f.First) - 1
	every := max(1, f.Every)
	return n >= 0 && n%every == 0 && (f.Times == 0 || n/every < f.Times)
}

// Fake is the script as the fakes take it, but for what the model says.
func (s Script) Fake() fake.Script {
	out := fake.Script{
		PartialLag: s.Recognizer.Partial, FinalLag: s.Recognizer.Final, FirstToken: s.Model.FirstToken, TokenGap: s.Model.Token,
		FirstByte: s.Voice.FirstAudio, LeadingSilence: s.Voice.Silence,
	}
	faults := slices.Clone(s.Faults)
	for _, f := range faults {
		out.LateBy = max(out.LateBy, f.By)
	}
	if len(faults) > 0 {
		out.Fault = func(p fake.Provider, n int) fake.Fault {
			for _, f := range faults {
				if f.Provider == p && f.hits(n) {
					return f.Fault
				}
			}
			return fake.None
		}
	}
	return out
}

// Addrs are where the providers listen: host and port of each.
type Addrs struct{ ASR, LLM, TTS string }

// Serve plays the providers on addrs until ctx ends, and prints where to point a
// system at. reply is what the model says; nil repeats what it was told.
func Serve(ctx context.Context, out io.Writer, addrs Addrs, s Script, reply func([]fake.Message) string) error {
	if err := s.Check(); err != nil {
		return err
	}
	script := s.Fake()
	script.Reply = reply
	var servers []*fake.Server
	var err error
	for _, addr := range []string{addrs.ASR, addrs.LLM, addrs.TTS} {
		var one *fake.Server
		if one, err = fake.Start(ctx, addr, script); err != nil {
			break
		}
		servers = append(servers, one)
	}
	if err == nil {
		if err = tell(out, servers[0].Addr(), servers[1].Addr(), servers[2].Addr(), s); err == nil {
			<-ctx.Done()
		}
	}
	for _, one := range servers {
		err = errors.Join(err, one.Close())
	}
	return err
}

// tell prints the addresses, by protocol.
func tell(out io.Writer, asr, llm, tts string, s Script) error {
	_, err := fmt.Fprintf(out, `recognizer  %[1]s, which understands tone words: partial %[4]v, final %[5]v
  Deepgram       ws://%[1]s/v1/listen and ws://%[1]s/v2/listen
  AssemblyAI     ws://%[1]s/v3/ws
  OpenAI         ws://%[1]s/v1/realtime?intent=transcription
model       %[2]s: first token %[6]v, then one every %[7]v
  OpenAI         http://%[2]s/v1/chat/completions
voice       %[3]s, which speaks tone words: first audio %[8]v
  ElevenLabs     ws://%[3]s/v1/text-to-speech/VOICE/stream-input
  Cartesia       ws://%[3]s/tts/websocket
  Deepgram       ws://%[3]s/v1/speak
  OpenAI         http://%[3]s/v1/audio/speech
any key is taken; each address speaks all of it; of Parley: PARLEY_FAKE_URL=%[1]s
%[9]sserving until Ctrl-C
`, asr, llm, tts, s.Recognizer.Partial, s.Recognizer.Final, s.Model.FirstToken, s.Model.Token, s.Voice.FirstAudio, faultLines(s.Faults))
	return err
}

func faultLines(faults []Fault) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "fault: %s %s, from request %d on, every %d", f.Provider, f.Fault, max(1, f.First), max(1, f.Every))
		if f.Times > 0 {
			fmt.Fprintf(&b, ", %d times", f.Times)
		}
		b.WriteString("\n")
	}
	return b.String()
}
