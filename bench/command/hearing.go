package command

import (
	"context"
	"fmt"

	"github.com/parley-voice/parley/bench/answering"
	"github.com/parley-voice/parley/bench/ending"
	"github.com/parley-voice/parley/bench/hearing"
	"github.com/parley-voice/parley/bench/result"
)

// Vad measures voice activity.
type Vad struct {
	Clips int  `help:"Clips of each condition and rate." default:"10"`
	Fit   bool `help:"Fit the model anew and print it, rather than measure it."`
}

// Run measures voice activity.
func (c Vad) Run(ctx context.Context, t *Terminal) error {
	if c.Fit {
		return hearing.Fit(ctx, t.Out, t.Bar("clips"))
	}
	fmt.Fprintf(t.Out, "voice activity: espeak-ng in eight voices, the energy gate beside the model, %d clips each, times p50/p95 in ms\n\n", c.Clips)
	return hearing.Run(ctx, t.Out, hearing.Options{Clips: c.Clips, Progress: t.Bar("conditions")})
}

// Amd measures who is said to have answered.
type Amd struct {
	Takes int    `help:"Recordings of each script and voice." default:"4"`
	Seed  uint64 `help:"Pauses, hiss and beeps follow from it. Published figures are of the default, which nothing was tuned on." default:"5"`
	JSON  string `help:"Write the result to this file." placeholder:"FILE"`
}

// Run measures who is said to have answered.
func (c Amd) Run(ctx context.Context, t *Terminal) error {
	return t.measure(ctx, "amd", c, c.JSON, func(f *result.File) error {
		fmt.Fprintf(t.Out, "answering machines: espeak-ng in eight voices through µ-law, transcripts from the scripts 300 ms behind, %d takes each, seed %d\n\n", c.Takes, c.Seed)
		return answering.Run(ctx, t.Out, answering.Options{Takes: c.Takes, Seed: c.Seed, Progress: t.Bar("voices"), Result: f})
	})
}

// Endings measures how well it is told that somebody has finished.
type Endings struct {
	Transcripts []string `arg:"" type:"existingfile" help:"What people said, an utterance a line. A file that is named twice counts twice."`
	Every       int      `help:"Measure one line in so many." default:"20"`
	Fit         string   `help:"Fit the model anew to the other lines, and write it to this file." placeholder:"FILE"`
	Classes     string   `help:"Classes of words, for --fit: a name, a colon and the words, one a line." type:"existingfile" placeholder:"FILE"`
	Grammar     string   `help:"Rules that make more lines, for --fit: a name, an equals sign and what may stand for it, one a line." type:"existingfile" placeholder:"FILE"`
}

// Run measures how well it is told that somebody has finished.
func (c Endings) Run(t *Terminal) error { return ending.Job(c).Run(t.Out, t.Errs) }
