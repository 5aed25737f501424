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
	"github.com/parley-voice/parley/pipeline/fake"
)

type benchCmd struct {
	All   benchAllCmd   `cmd:"" help:"All of it, as docs/benchmarks.md has it."`
	Media benchMediaCmd `cmd:"" help:"What a call costs on the wire, beside the bare floor in the same run."`
	Turns benchTurnsCmd `cmd:"" help:"How long callers wait for an answer, and how much of it is ours."`
	Vad   benchVadCmd   `cmd:"" help:"How well voice activity is told, as docs/vad.md has it."`

	Plane     benchPlaneCmd     `cmd:"" hidden:""`
	Gateway   benchGatewayCmd   `cmd:"" hidden:""`
	Providers benchProvidersCmd `cmd:"" hidden:""`
}

type benchAllCmd struct{}

// Run measures everything, with the defaults of each.
func (benchAllCmd) Run(w *world) error {
	fmt.Fprintf(w.out, "parley %s, %s, %d cores (%s)\n\n", version, time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), cpuModel())
	if err := (benchTurnsCmd{Calls: 10, Turns: 12}).Run(w); err != nil {
		return err
	}
	fmt.Fprintln(w.out)
	return benchMediaCmd{Calls: []int{50, 100, 200}, Runs: 5, Length: 5 * time.Second}.Run(w)
}

type benchTurnsCmd struct {
	Calls int `help:"Calls at a time." default:"10"`
	Turns int `help:"Turns of each call." default:"12"`
}

// Run measures turns at the caller's end.
func (c benchTurnsCmd) Run(w *world) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	critical := bench.Critical(fake.Typical())
	fmt.Fprintf(w.out, "turns: SIP and RTP, providers in another process (%v by script and policy), %d calls at a time\n", critical, c.Calls)
	r, err := bench.Turns(w, bench.TurnOptions{
		Calls: c.Calls, Turns: c.Turns, Progress: progressBar(w.errs, "exchanges"),
		Child: func(ctx context.Context, name string) *exec.Cmd {
			return exec.CommandContext(ctx, self, "bench", name) //nolint:gosec // ourselves
		},
	})
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w.out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "measure\tn\tp50\tp95\tp99\tmax\t")
	for _, row := range []struct {
		name  string
		times bench.Times
	}{
		{"answer → first agent audio", r.FirstAudio},
		{"caller's last packet → first agent audio", r.Wire},
		{"overhead of it", r.Overhead},
		{"the server's turn_ms is off by", r.Off},
	} {
		fmt.Fprintf(t, "%s\t%d\t%.1f ms\t%.1f ms\t%.1f ms\t%.1f ms\t\n", row.name, len(row.times),
			millis(row.times.Quantile(.5)), millis(row.times.Quantile(.95)), millis(row.times.Quantile(.99)), millis(row.times.Quantile(1)))
	}
	return t.Flush()
}

type (
	benchGatewayCmd   struct{}
	benchProvidersCmd struct{}
)

// Run is the measured process of a turn bench.
func (benchGatewayCmd) Run(w *world) error { return bench.Gateway(w, os.Stdin, w.out) }

// Run plays the providers of a turn bench.
func (benchProvidersCmd) Run(w *world) error { return bench.Providers(w, os.Stdin, w.out) }

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
