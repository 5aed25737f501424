// Package providers serves fake speech-to-text, model and voice providers, each on its own port.
// They speak the real wire protocols, with scripted delays and faults, so other voice systems can
// use them too.
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

	"github.com/parley-voice/parley/bench/yamlstrict"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// A Script configures the providers. The YAML keys are those of a script file.
type Script struct {
	Recognizer Recognizer `yaml:"recognizer"`
	Model      Model      `yaml:"model"`
	Voice      Voice      `yaml:"voice"`
	Faults     []Fault    `yaml:"faults"`
}

// A Recognizer configures the speech-to-text provider.
type Recognizer struct {
	Partial time.Duration `yaml:"partial"` // from the end of a word to the interim result that contains it
	Final   time.Duration `yaml:"final"`   // from the request for the final result to that result
}

// A Model configures the model.
type Model struct {
	FirstToken time.Duration `yaml:"first_token"`
	Token      time.Duration `yaml:"token"` // between two tokens
}

// A Voice configures the voice, which speaks tone words.
type Voice struct {
	FirstAudio time.Duration `yaml:"first_audio"`
	Silence    time.Duration `yaml:"silence"` // silence before the first word
}

// A Fault breaks some requests of a provider. Each connection of a recognizer and each utterance
// of a voice is one request.
type Fault struct {
	Provider fakeprovider.Provider `yaml:"provider"`
	Fault    fakeprovider.Fault    `yaml:"fault"`
	First    int                   `yaml:"first"` // number of the first affected request, from 1; 0 means 1
	Every    int                   `yaml:"every"` // every n-th further request is affected; 0 means 1
	Times    int                   `yaml:"times"` // largest number of affected requests; 0 means no limit
	// By is the delay of requests with the fault late or slow; 0 means 3 s. The largest By of all
	// faults applies to all.
	By time.Duration `yaml:"by"`
}

// Typical returns a script without faults. The targets of the benchmarks assume its delays.
func Typical() Script {
	s := fakeprovider.Typical()
	return Script{
		Recognizer: Recognizer{Partial: s.PartialLag, Final: s.FinalLag},
		Model:      Model{FirstToken: s.FirstToken, Token: s.TokenGap},
		Voice:      Voice{FirstAudio: s.FirstByte},
	}
}

// Read reads a script file. Values missing in the file are those of Typical.
func Read(name string) (Script, error) {
	s := Typical()
	b, err := os.ReadFile(name) //nolint:gosec // the user's own
	if err != nil {
		return s, err
	}
	if err = yamlstrict.Read(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// ParseFault parses a fault in the form of the command line, such as "llm=slow" or
// "asr=late,first=2,every=5,times=3,by=2s".
func ParseFault(text string) (Fault, error) {
	var f Fault
	wrong := func(what string) (Fault, error) {
		return f, fmt.Errorf("fault %q: %s: want PROVIDER=FAULT and then any of ,first=N ,every=N ,times=N ,by=TIME", text, what)
	}
	head, rest, more := strings.Cut(text, ",")
	provider, what, ok := strings.Cut(head, "=")
	if !ok {
		return wrong("no fault named")
	}
	f.Provider, f.Fault = fakeprovider.Provider(provider), fakeprovider.Fault(what)
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

// Check validates a script.
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

// Check validates faults.
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
	case !slices.Contains([]fakeprovider.Provider{fakeprovider.ASR, fakeprovider.LLM, fakeprovider.TTS}, f.Provider):
		return fmt.Errorf("unknown provider %q: accepted are asr, llm and tts", f.Provider)
	case !slices.Contains(fakeprovider.Faults(), f.Fault):
		return fmt.Errorf("unknown fault %q: accepted are %s", f.Fault, list(fakeprovider.Faults()))
	case !f.fits():
		return fmt.Errorf("%s of %s: late and mute apply to asr, slow applies to llm and tts", f.Fault, f.Provider)
	case f.First < 0 || f.Every < 0 || f.Times < 0:
		return errors.New("first, every and times must not be negative")
	case f.By < 0 || f.By > time.Minute || f.By > 0 && f.Fault != fakeprovider.Late && f.Fault != fakeprovider.Slow:
		return fmt.Errorf("by %v: accepted are 0s to 1m, for late and slow only", f.By)
	}
	return nil
}

// fits reports whether the provider supports the fault.
func (f Fault) fits() bool {
	switch f.Fault {
	case fakeprovider.Late, fakeprovider.Mute:
		return f.Provider == fakeprovider.ASR
	case fakeprovider.Slow:
		return f.Provider != fakeprovider.ASR
	default:
		return true
	}
}

func list(all []fakeprovider.Fault) string {
	var names []string
	for _, f := range all {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// hits reports whether the fault affects request n, counted from 0, of its provider.
func (f Fault) hits(n int) bool {
	n -= max(1, f.First) - 1
	every := max(1, f.Every)
	return n >= 0 && n%every == 0 && (f.Times == 0 || n/every < f.Times)
}

// Fake returns the script for package fakeprovider. The result has no function for replies.
func (s Script) Fake() fakeprovider.Script {
	out := fakeprovider.Script{
		PartialLag: s.Recognizer.Partial, FinalLag: s.Recognizer.Final, FirstToken: s.Model.FirstToken, TokenGap: s.Model.Token,
		FirstByte: s.Voice.FirstAudio, LeadingSilence: s.Voice.Silence,
	}
	faults := slices.Clone(s.Faults)
	for _, f := range faults {
		out.LateBy = max(out.LateBy, f.By)
	}
	if len(faults) > 0 {
		out.Fault = func(p fakeprovider.Provider, n int) fakeprovider.Fault {
			for _, f := range faults {
				if f.Provider == p && f.hits(n) {
					return f.Fault
				}
			}
			return fakeprovider.None
		}
	}
	return out
}

// Addrs are the listen addresses, host:port.
type Addrs struct{ ASR, LLM, TTS string }

// An Understanding is how the providers understand: Reply returns the model's reply to a conversation; nil repeats the
// last message. NewDecoder is that of fakeprovider.Script.
type Understanding struct {
	Reply      func([]fakeprovider.Message) string
	NewDecoder func(rate int) fakeprovider.Decoder
}

// words names what the recognizer understands.
func (u Understanding) words() string {
	if u.NewDecoder == nil {
		return "tone words"
	}
	return "the speech of bench turns --speech"
}

// Serve runs the providers until ctx ends, and prints their URLs.
func Serve(ctx context.Context, out io.Writer, addrs Addrs, s Script, how Understanding) error {
	if err := s.Check(); err != nil {
		return err
	}
	script := s.Fake()
	script.Reply, script.NewDecoder = how.Reply, how.NewDecoder
	var servers []*fakeprovider.Server
	var err error
	for _, addr := range []string{addrs.ASR, addrs.LLM, addrs.TTS} {
		var one *fakeprovider.Server
		if one, err = fakeprovider.Start(ctx, addr, script); err != nil {
			break
		}
		servers = append(servers, one)
	}
	if err == nil {
		if err = printAddrs(out, servers[0].Addr(), servers[1].Addr(), servers[2].Addr(), how.words(), s); err == nil {
			<-ctx.Done()
		}
	}
	for _, one := range servers {
		err = errors.Join(err, one.Close())
	}
	return err
}

// printAddrs prints the addresses by protocol.
func printAddrs(out io.Writer, asr, llm, tts, words string, s Script) error {
	_, err := fmt.Fprintf(out, `speech-to-text  %[1]s, for %[10]s: partial %[4]v, final %[5]v
  Deepgram       ws://%[1]s/v1/listen and ws://%[1]s/v2/listen
  AssemblyAI     ws://%[1]s/v3/ws
  OpenAI         ws://%[1]s/v1/realtime?intent=transcription
model           %[2]s: first token %[6]v, then one every %[7]v
  OpenAI         http://%[2]s/v1/chat/completions and http://%[2]s/v1/responses
  Anthropic      http://%[2]s/v1/messages
  Gemini         http://%[2]s/v1beta/models/MODEL:streamGenerateContent
voice           %[3]s, in tone words: first audio %[8]v
  ElevenLabs     ws://%[3]s/v1/text-to-speech/VOICE/stream-input
  Cartesia       ws://%[3]s/tts/websocket
  Deepgram       ws://%[3]s/v1/speak
  OpenAI         http://%[3]s/v1/audio/speech
Any API key is accepted; each address serves all protocols. For Parley: PARLEY_FAKE_URL=%[1]s
%[9]sServing until Ctrl-C
`, asr, llm, tts, s.Recognizer.Partial, s.Recognizer.Final, s.Model.FirstToken, s.Model.Token, s.Voice.FirstAudio, faultLines(s.Faults), words)
	return err
}

func faultLines(faults []Fault) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "fault: %s %s, from request %d, every %d", f.Provider, f.Fault, max(1, f.First), max(1, f.Every))
		if f.Times > 0 {
			fmt.Fprintf(&b, ", %d times", f.Times)
		}
		b.WriteString("\n")
	}
	return b.String()
}
