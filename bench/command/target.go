package command

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/target"
)

// Other says which system to measure where it is not Parley.
type Other struct {
	Target string        `help:"Dial this system and measure it, rather than Parley: sip:user@host[:port][;transport=udp|tcp]." placeholder:"SIP-URI"`
	From   string        `help:"With --target: the caller number that is shown." default:"12025550100"`
	Lines  int           `help:"With --target: lines of each call." default:"10"`
	First  bool          `help:"With --target: speak first, without waiting for a greeting."`
	Into   time.Duration `help:"With --target: say every second line into the answer, once that was heard for so long."`
	Speech bool          `help:"With --target: speak with espeak-ng, rather than in tone words."`
	WAV    []string      `name:"wav" type:"existingfile" help:"With --target: say these recordings instead, in turn." placeholder:"FILE"`
}

// run measures the system.
func (c Other) run(ctx context.Context, t *Terminal, calls int, seed uint64, f *result.File) error {
	err := target.Run(ctx, target.Options{
		Target: c.Target, From: c.From, Calls: calls, Lines: c.Lines, First: c.First, Into: c.Into,
		Speech: target.Speech{Seed: seed, Voices: c.Speech, Files: c.WAV}, Progress: t.Bar("lines"),
	}, f)
	if err != nil {
		return err
	}
	for _, n := range f.Notes {
		fmt.Fprintf(t.Out, "%s\n\n", n)
	}
	return f.Table(t.Out)
}
