package command

import (
	"context"
	"time"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/wording"
)

// Providers plays providers for any voice system.
type Providers struct {
	Script string   `arg:"" optional:"" type:"existingfile" help:"Delays and faults, as YAML; see docs/bench.md."`
	ASR    string   `name:"asr" help:"Where the recognizer listens." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	LLM    string   `name:"llm" help:"Where the model listens." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	TTS    string   `name:"tts" help:"Where the voice listens." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	Reply  string   `help:"What the model says: words, by which the bench knows what was answered, or what it was told (repeat)." enum:"words,repeat" default:"words"`
	Fault  []string `sep:"none" help:"What goes wrong: PROVIDER=FAULT and then any of ,first=N ,every=N ,times=N ,by=TIME. May be given again." placeholder:"llm=slow,every=5,by=2s"`

	Partial    *time.Duration `help:"The end of a word to the interim result that holds it (100ms)."`
	Final      *time.Duration `help:"The request for it to the final result (150ms)."`
	FirstToken *time.Duration `help:"The request to the model's first token (200ms)."`
	Token      *time.Duration `help:"One token to the next (10ms)."`
	FirstAudio *time.Duration `help:"The first text to the first speech (100ms)."`
	Silence    *time.Duration `help:"Silence that the voice begins with (none)."`
}

// Run plays the providers until ctx ends.
func (c Providers) Run(ctx context.Context, t *Terminal) error {
	s, err := c.script()
	if err != nil {
		return err
	}
	reply := wording.Reply
	if c.Reply == "repeat" {
		reply = nil
	}
	return providers.Serve(ctx, t.Out, providers.Addrs{ASR: c.ASR, LLM: c.LLM, TTS: c.TTS}, s, reply)
}

// script is the file's, with what the flags say beside.
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

// Fakes plays the providers of a turn bench.
type Fakes struct{}

// Run plays the providers.
func (Fakes) Run(ctx context.Context, t *Terminal) error { return gateway.Fakes(ctx, t.In, t.Out) }
