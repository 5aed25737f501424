package command

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/bench"
)

// Media measures the media path.
type Media struct {
	Calls  []int         `help:"Calls at a time." default:"50,100,200"`
	Runs   int           `help:"Runs of each design, interleaved; the median counts." default:"5"`
	Length time.Duration `help:"How long each run is measured." default:"5s"`
}

// Run measures the media path.
func (c Media) Run(ctx context.Context, t *Terminal) error {
	fmt.Fprintf(t.Out, "media path: leg → ear + voice activity → mouth → leg, PCMU 20 ms both ways, on %d cores (%s)\n", runtime.NumCPU(), cpuModel())
	results, err := bench.Media(ctx, bench.MediaOptions{
		Calls: c.Calls, Runs: c.Runs, Warm: 1500 * time.Millisecond, Length: c.Length,
		Child:    func(ctx context.Context, d bench.Design) *exec.Cmd { return t.Child(ctx, "bench", "plane", string(d)) },
		Progress: t.Bar("runs"),
	})
	if err != nil {
		return err
	}
	floor := map[int]time.Duration{}
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "calls\tdesign\tCPU ms/call-s\t(low–high)\t× floor\tpackets\t(least)\tgap p99\tp99.9\t(worst)\tKiB/call\tlate ticks\t")
	for _, r := range results {
		if r.Design == bench.Floor {
			floor[r.Calls] = r.CPU
		}
		fmt.Fprintf(w, "%d\t%s\t%.2f\t(%.2f–%.2f)\t%.1f\t%.2f %%\t(%.2f)\t%.1f ms\t%.1f ms\t(%.1f)\t%d\t%d\t\n", r.Calls, r.Design,
			millis(r.CPU), millis(r.Low), millis(r.High), float64(r.CPU)/float64(floor[r.Calls]),
			100*r.Sent, 100*r.Least, millis(r.P99), millis(r.P999), millis(r.Worst), r.RSS/1024, r.Late)
	}
	return w.Flush()
}

// Plane is the measured process of a media bench.
type Plane struct {
	Design string `arg:""`
}

// Run carries calls.
func (c Plane) Run(ctx context.Context, t *Terminal) error {
	return bench.Plane(ctx, bench.Design(c.Design), t.In, t.Out)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
