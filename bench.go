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
)

type benchCmd struct {
	Media benchMediaCmd `cmd:"" help:"What a call costs on the wire, beside the bare floor in the same run."`
	Plane benchPlaneCmd `cmd:"" hidden:""`
}

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
	fmt.Fprintln(t, "calls\tdesign\tCPU ms/call-s\t(low–high)\t× floor\tpackets\tgap p99\tp99.9\tKiB/call\tlate ticks\t")
	for _, r := range results {
		if r.Design == bench.Floor {
			floor[r.Calls] = r.CPU
		}
		fmt.Fprintf(t, "%d\t%s\t%.2f\t(%.2f–%.2f)\t%.1f\t%.2f %%\t%.1f ms\t%.1f ms\t%d\t%d\t\n", r.Calls, r.Design,
			millis(r.CPU), millis(r.Low), millis(r.High), float64(r.CPU)/float64(floor[r.Calls]),
			100*r.Sent, millis(r.P99), millis(r.P999), r.RSS/1024, r.Late)
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
