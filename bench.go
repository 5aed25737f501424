package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/bench"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/scenario"
)

type benchCmd struct {
	All     benchAllCmd     `cmd:"" help:"All of it, as docs/benchmarks.md has it."`
	Media   benchMediaCmd   `cmd:"" help:"What a call costs on the wire, beside the bare floor in the same run."`
	Turns   benchTurnsCmd   `cmd:"" help:"How long callers wait for an answer, and how much of it is ours."`
	Vad     benchVadCmd     `cmd:"" help:"How well voice activity is told, as docs/vad.md has it."`
	API     benchAPICmd     `cmd:"" help:"How many orders a second are accepted, and how soon calls and lists of them are read."`
	Amd     benchAmdCmd     `cmd:"" help:"How well and how soon it is told who answered, as docs/answering-machines.md has it."`
	Endings benchEndingsCmd `cmd:"" help:"How well it is told that a caller has finished, on transcripts of yours."`

	Plane     benchPlaneCmd     `cmd:"" hidden:""`
	Gateway   benchGatewayCmd   `cmd:"" hidden:""`
	Providers benchProvidersCmd `cmd:"" hidden:""`
}

type benchAllCmd struct{}

// Run measures everything, with the defaults of each.
func (benchAllCmd) Run(w *world) error {
	fmt.Fprintf(w.out, "parley %s, %s, %d cores (%s)\n\n", version, time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), cpuModel())
	if err := (benchTurnsCmd{Calls: 36, Pauses: 600, Seed: corpus.HeldOut}).Run(w); err != nil {
		return err
	}
	fmt.Fprintln(w.out)
	return benchMediaCmd{Calls: []int{50, 100, 200}, Runs: 5, Length: 5 * time.Second}.Run(w)
}

type benchTurnsCmd struct {
	Calls   int             `help:"Calls at a time." default:"36"`
	Pauses  int             `help:"Pauses that callers make, at least; the other scenarios are in proportion." default:"600"`
	Seed    uint64          `help:"What callers say follows from it. Published figures are of the default, which nothing was tuned on." default:"20261121"`
	Without []string        `help:"Run all again with these switched off, and show it beside: speculation, merging."`
	Only    []scenario.Name `help:"Only these scenarios: plain, pauses, barge-in, backchannel, cough, resume, echo, hang-up."`
	JSON    string          `help:"Write everything to this file." placeholder:"FILE"`
	Worst   string          `help:"Write recordings of the 10 worst turns to this folder." placeholder:"DIR"`
	Logs    string          `help:"Write the turn log of each call to this folder, for parley replay." type:"existingdir" placeholder:"DIR"`
}

// Run measures turns at the caller's end.
func (c benchTurnsCmd) Run(w *world) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return scenario.Bench(w, w.out, scenario.Options{
		Calls: c.Calls, Pauses: c.Pauses, Seed: c.Seed, Without: c.Without, Only: c.Only, Logs: c.Logs, Progress: progressBar(w.errs, "lines"),
		Child: func(ctx context.Context, name string) *exec.Cmd {
			return exec.CommandContext(ctx, self, "bench", name) //nolint:gosec // ourselves
		},
	}, c.JSON, c.Worst)
}

type (
	benchGatewayCmd   struct{}
	benchProvidersCmd struct{}
)

// Run is the measured process of a turn bench.
func (benchGatewayCmd) Run(w *world) error { return scenario.Gateway(w, os.Stdin, w.out) }

// Run plays the providers of a turn bench.
func (benchProvidersCmd) Run(w *world) error { return scenario.Providers(w, os.Stdin, w.out) }

type benchMediaCmd struct {
	Calls  []int         `help:"Calls at a time." default:"50,100,200"`
	Runs   int           `help:"Runs of each design, interleaved; the median counts." default:"5"`
	Length time.Duration `help:"How long each run is measured." default:"5s"`
}

// Run measures the media path.
func (c benchMediaCmd) Run(w *world) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(w.out, "media path: leg → ear + voice activity → mouth → leg, PCMU 20 ms both ways, on %d cores (%s)\n", runtime.NumCPU(), cpuModel())
	results, err := bench.Media(w, bench.MediaOptions{
		Calls: c.Calls, Runs: c.Runs, Warm: 1500 * time.Millisecond, Length: c.Length,
		Child: func(ctx context.Context, d bench.Design) *exec.Cmd {
			return exec.CommandContext(ctx, self, "bench", "plane", string(d)) //nolint:gosec // ourselves
		},
		Progress: progressBar(w.errs, "runs"),
	})
	if err != nil {
		return err
	}
	floor := map[int]time.Duration{}
	t := tabwriter.NewWriter(w.out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "calls\tdesign\tCPU ms/call-s\t(low–high)\t× floor\tpackets\t(least)\tgap p99\tp99.9\t(worst)\tKiB/call\tlate ticks\t")
	for _, r := range results {
		if r.Design == bench.Floor {
			floor[r.Calls] = r.CPU
		}
		fmt.Fprintf(t, "%d\t%s\t%.2f\t(%.2f–%.2f)\t%.1f\t%.2f %%\t(%.2f)\t%.1f ms\t%.1f ms\t(%.1f)\t%d\t%d\t\n", r.Calls, r.Design,
			millis(r.CPU), millis(r.Low), millis(r.High), float64(r.CPU)/float64(floor[r.Calls]),
			100*r.Sent, 100*r.Least, millis(r.P99), millis(r.P999), millis(r.Worst), r.RSS/1024, r.Late)
	}
	return t.Flush()
}

type benchPlaneCmd struct {
	Design string `arg:""`
}

// Run is the measured process.
func (c benchPlaneCmd) Run(w *world) error {
	return bench.Plane(w, bench.Design(c.Design), os.Stdin, w.out)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// cpuModel is what the machine calls its processor.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}
