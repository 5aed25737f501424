package main

import (
	"fmt"

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
