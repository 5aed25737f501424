package main

import (
	"fmt"

	"github.com/parley-voice/parley/bench/answering"
	"github.com/parley-voice/parley/bench/ending"
	"github.com/parley-voice/parley/bench/hearing"
)

type benchVadCmd struct {
	Clips int  `help:"Clips of each condition and rate." default:"10"`
	Fit   bool `help:"Fit the model anew and print it, rather than measure it."`
}

// Run measures voice activity.
func (c benchVadCmd) Run(w *world) error {
	if c.Fit {
		return hearing.Fit(w, w.out, progressBar(w.errs, "clips"))
	}
	fmt.Fprintf(w.out, "voice activity: espeak-ng in eight voices, the energy gate beside the model, %d clips each, times p50/p95 in ms\n\n", c.Clips)
	return hearing.Run(w, w.out, hearing.Options{Clips: c.Clips, Progress: progressBar(w.errs, "conditions")})
}

type benchAmdCmd struct {
	Takes int `help:"Recordings of each script and voice." default:"4"`
}

// Run measures who is said to have answered.
func (c benchAmdCmd) Run(w *world) error {
	fmt.Fprintf(w.out, "answering machines: espeak-ng in eight voices through µ-law, transcripts from the scripts 300 ms behind, %d takes each\n\n", c.Takes)
	return answering.Run(w, w.out, answering.Options{Takes: c.Takes, Progress: progressBar(w.errs, "voices")})
}

type benchEndingsCmd struct {
	Transcripts []string `arg:"" type:"existingfile" help:"What people said, an utterance a line. A file that is named twice counts twice."`
	Every       int      `help:"Measure one line in so many." default:"20"`
	Fit         string   `help:"Fit the model anew to the other lines, and write it to this file." placeholder:"FILE"`
	Classes     string   `help:"Classes of words, for --fit: a name, a colon and the words, one a line." type:"existingfile" placeholder:"FILE"`
	Grammar     string   `help:"Rules that make more lines, for --fit: a name, an equals sign and what may stand for it, one a line." type:"existingfile" placeholder:"FILE"`
}

// Run measures how well it is told that somebody has finished.
func (c benchEndingsCmd) Run(w *world) error { return ending.Job(c).Run(w.out, w.errs) }
