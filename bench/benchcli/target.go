package benchcli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/target"
)

// Other selects another system to measure instead of Parley.
type Other struct {
	Target string        `help:"Dial and measure this system instead of Parley: sip:user@host[:port][;transport=udp|tcp]." placeholder:"SIP-URI"`
	Order  string        `json:"-" help:"Measure a system that dials: run this shell command once per call ($CALL is 0, 1, …), and answer the calls at --listen." placeholder:"COMMAND"`
	Listen string        `help:"With --order: SIP address of this machine to which the system dials." default:"127.0.0.1:5090" placeholder:"IP:PORT"`
	From   string        `help:"With --target: caller ID to send." default:"12025550100"`
	Lines  int           `help:"With --target or --order: utterances of the caller per call." default:"10"`
	First  bool          `help:"With --target or --order: speak without waiting for a greeting."`
	Into   time.Duration `help:"With --target or --order: interrupt every second answer this long after it starts."`
	Speech bool          `help:"With --target or --order: speak with espeak-ng instead of tone words."`
	WAV    []string      `name:"wav" type:"existingfile" help:"With --target or --order: play these recordings in turn." placeholder:"FILE"`
}

// given reports whether another system is to be measured.
func (c Other) given() bool { return c.Target != "" || c.Order != "" }

func (c Other) run(ctx context.Context, t *Terminal, out io.Writer, calls int, seed uint64, f *result.File) error {
	err := target.Run(ctx, target.Options{
		Target: c.Target, Order: c.Order, Listen: c.Listen, From: c.From, Calls: calls, Lines: c.Lines, First: c.First, Into: c.Into,
		Speech: target.Speech{Seed: seed, Voices: c.Speech, Files: c.WAV}, Progress: t.Bar("utterances"),
	}, f)
	if err != nil {
		return err
	}
	for _, n := range f.Notes {
		fmt.Fprintf(out, "%s\n\n", n)
	}
	return f.Table(out)
}
