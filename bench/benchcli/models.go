package benchcli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/parley-voice/parley/bench/amd"
	"github.com/parley-voice/parley/bench/eot"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/vad"
)

// Vad measures voice activity detection.
type Vad struct {
	Clips int  `help:"Clips per condition and sample rate." default:"10"`
	Fit   bool `help:"Train the model and print it instead of measuring it."`
}

// Run implements the command.
func (c Vad) Run(ctx context.Context, t *Terminal) error {
	if c.Fit {
		return vad.Fit(ctx, t.Out, t.Bar("clips"))
	}
	fmt.Fprintf(t.Out, "voice activity: espeak-ng, eight voices, energy gate and model, %d clips each, times p50/p95 in ms\n\n", c.Clips)
	return vad.Run(ctx, t.Out, vad.Options{Clips: c.Clips, Progress: t.Bar("conditions")})
}

// Amd measures answering machine detection.
type Amd struct {
	Takes int    `help:"Recordings per script and voice." default:"4"`
	Seed  uint64 `help:"Seed of pauses, hiss and beeps. Published figures use the default, on which nothing was tuned." default:"5"`
	JSON  string `help:"Write the result to this file." placeholder:"FILE"`
}

// Run implements the command.
func (c Amd) Run(ctx context.Context, t *Terminal) error {
	return t.measure(ctx, "amd", c, c.JSON, func(out io.Writer, f *result.File) error {
		fmt.Fprintf(out, "answering machines: espeak-ng, eight voices, µ-law, transcripts 300 ms late, %d takes each, seed %d\n\n",
			c.Takes, c.Seed)
		return amd.Run(ctx, out, amd.Options{Takes: c.Takes, Seed: c.Seed, Progress: t.Bar("voices"), Result: f})
	})
}

// Endings measures the end-of-turn model.
type Endings struct {
	Transcripts []string `arg:"" optional:"" type:"existingfile" help:"Transcripts, one utterance per line. A file named twice counts twice."`
	Every       int      `help:"Measure every n-th line." default:"20"`
	Fit         string   `help:"Train a model on the other lines and write it to this file." placeholder:"FILE"`
	Classes     string   `help:"Word classes for --fit, one per line: a name, a colon, the words." type:"existingfile" placeholder:"FILE"`
	Grammar     string   `help:"Grammar rules that generate more lines for --fit, one per line: a name, an equals sign, the alternatives." type:"existingfile" placeholder:"FILE"`
	Dialogues   []string `help:"Dialogues of people, instead of transcripts: a file or folder of .json (QMSum), .csv (ACI-Bench) or .txt (\"D: text\"). With --fit, they train the model of turns." type:"path" placeholder:"PATH"`
	Speaker     string   `help:"With --dialogues, measure only this speaker." placeholder:"NAME"`
}

// Run implements the command.
func (c Endings) Run(t *Terminal) error {
	switch {
	case len(c.Dialogues) > 0 && len(c.Transcripts) > 0:
		return errors.New("transcripts and --dialogues cannot be combined")
	case len(c.Dialogues) > 0:
		return eot.Dialogues{Paths: c.Dialogues, Fit: c.Fit, Speaker: c.Speaker}.Run(t.Out)
	case len(c.Transcripts) == 0:
		return errors.New("want transcripts or --dialogues")
	}
	return eot.Job{Transcripts: c.Transcripts, Every: c.Every, Fit: c.Fit, Classes: c.Classes, Grammar: c.Grammar}.Run(t.Out, t.Errs)
}
