package benchcli

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-voice/parley/bench/audiogen"
	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/target"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// Providers serves fake providers for Parley or another voice system.
type Providers struct {
	Script string   `arg:"" optional:"" type:"existingfile" help:"Delays and faults, as YAML; see docs/bench.md."`
	ASR    string   `name:"asr" help:"Address of the speech-to-text server." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	LLM    string   `name:"llm" help:"Address of the model server." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	TTS    string   `name:"tts" help:"Address of the voice server." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	Reply  string   `help:"Replies of the model: words (coded, so that a listener knows which message was answered) or repeat (the message itself)." enum:"words,repeat" default:"words"`
	Words  int      `help:"Words of a reply, 1 to 200." default:"5"`
	Speech bool     `help:"Recognize what bench turns --speech speaks with espeak-ng, instead of tone words."`
	Seed   uint64   `help:"With --speech: the value that bench turns gets for --seed." default:"20261121"`
	Calls  int      `help:"With --speech: the value that bench turns gets for --calls." default:"1"`
	Lines  int      `help:"With --speech: the value that bench turns gets for --lines." default:"10"`
	Fault  []string `sep:"none" help:"Fault to inject: PROVIDER=FAULT, then any of ,first=N ,every=N ,times=N ,by=TIME. Repeatable." placeholder:"llm=slow,every=5,by=2s"`

	Partial    *time.Duration `help:"Delay from the end of a word to the interim result with it (100ms)."`
	Final      *time.Duration `help:"Delay from the request to the final result (150ms)."`
	FirstToken *time.Duration `help:"Delay from the request to the first token (200ms)."`
	Token      *time.Duration `help:"Delay between tokens (10ms)."`
	FirstAudio *time.Duration `help:"Delay from the first text to the first audio (100ms)."`
	Silence    *time.Duration `help:"Leading silence of the voice (none)."`
}

// Run implements the command.
func (c Providers) Run(ctx context.Context, t *Terminal) error {
	s, err := c.script()
	if err != nil {
		return err
	}
	if c.Words < 1 || c.Words > 200 {
		return fmt.Errorf("--words %d: accepted are 1 to 200", c.Words)
	}
	how := providers.Understanding{Reply: providers.ReplyOf(c.Words)}
	if c.Reply == "repeat" {
		how.Reply = nil
	}
	if c.Speech {
		if how.NewDecoder, err = c.recognizer(ctx); err != nil {
			return err
		}
	}
	return providers.Serve(ctx, t.Out, providers.Addrs{ASR: c.ASR, LLM: c.LLM, TTS: c.TTS}, s, how)
}

// maxSentences bounds the lines to recognize, because each is compared with each recognized audio.
const maxSentences = 400

// recognizer returns a recognizer of the lines that bench turns speaks with equal options.
func (c Providers) recognizer(ctx context.Context) (func(rate int) fakeprovider.Decoder, error) {
	if n := c.Calls * c.Lines; c.Calls < 1 || c.Lines < 1 || n > maxSentences {
		return nil, fmt.Errorf("--calls %d --lines %d: want at least 1 of each, and a product of at most %d", c.Calls, c.Lines, maxSentences)
	}
	lines, err := target.Speech{Seed: c.Seed, Voices: true}.Sentences(ctx, c.Calls, c.Lines)
	if err != nil {
		return nil, err
	}
	r := audiogen.NewRecognizer(lines)
	return func(rate int) fakeprovider.Decoder { return r.NewDecoder(rate) }, nil
}

// script returns the script of the file. Flags override it.
func (c Providers) script() (providers.Script, error) {
	s := providers.Typical()
	if c.Script != "" {
		var err error
		if s, err = providers.Read(c.Script); err != nil {
			return s, err
		}
	}
	for to, from := range map[*time.Duration]*time.Duration{
		&s.Recognizer.Partial: c.Partial, &s.Recognizer.Final: c.Final, &s.Model.FirstToken: c.FirstToken, &s.Model.Token: c.Token,
		&s.Voice.FirstAudio: c.FirstAudio, &s.Voice.Silence: c.Silence,
	} {
		if from != nil {
			*to = *from
		}
	}
	for _, text := range c.Fault {
		f, err := providers.ParseFault(text)
		if err != nil {
			return s, err
		}
		s.Faults = append(s.Faults, f)
	}
	return s, nil
}

// Fakes is the fake providers' process of the turns benchmark.
type Fakes struct{}

// Run implements the command.
func (Fakes) Run(ctx context.Context, t *Terminal) error { return gateway.Fakes(ctx, t.In, t.Out) }
