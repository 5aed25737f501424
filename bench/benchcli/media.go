package benchcli

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/bench"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/stat"
)

// Media measures the media path.
type Media struct {
	Calls  []int         `help:"Concurrent calls." default:"50,100,200"`
	Runs   int           `help:"Runs per design, interleaved; the median counts." default:"5"`
	Length time.Duration `help:"Duration of each run." default:"5s"`
	JSON   string        `help:"Write the result to this file." placeholder:"FILE"`
}

// Run implements the command.
func (c Media) Run(ctx context.Context, t *Terminal) error {
	return t.measure(ctx, "media", c, c.JSON, func(out io.Writer, f *result.File) error {
		fmt.Fprintf(out, "media path: receive, voice activity, playout, send; PCMU 20 ms both ways; %d cores (%s)\n", f.Machine.Cores,
			f.Machine.Model)
		results, err := bench.Media(ctx, bench.MediaOptions{
			Calls: c.Calls, Runs: c.Runs, Warm: 1500 * time.Millisecond, Length: c.Length,
			Child:    func(ctx context.Context, d bench.Design) *exec.Cmd { return t.Child(ctx, "bench", "plane", string(d)) },
			Progress: t.Bar("runs"),
		})
		if err != nil {
			return err
		}
		addMedia(f, results)
		return printMedia(out, results)
	})
}

// printMedia prints the cost of calls, one line per design and load.
func printMedia(out io.Writer, results []bench.MediaResult) error {
	floor := map[int]time.Duration{}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "calls\tdesign\tCPU ms/call-s\t(low–high)\t× floor\tpackets\t(least)\tgap p99\tp99.9\t(worst)\tKiB/call\tlate ticks\t")
	for _, r := range results {
		if r.Design == bench.Floor {
			floor[r.Calls] = r.CPU
		}
		fmt.Fprintf(w, "%d\t%s\t%.2f\t(%.2f–%.2f)\t%.1f\t%.2f%%\t(%.2f)\t%.1f ms\t%.1f ms\t(%.1f)\t%d\t%d\t\n", r.Calls, r.Design,
			millis(r.CPU), millis(r.Low), millis(r.High), float64(r.CPU)/float64(floor[r.Calls]),
			100*r.Sent, 100*r.Least, millis(r.P99), millis(r.P999), millis(r.Worst), r.RSS/1024, r.Late)
	}
	return w.Flush()
}

// targetLoad is the load for which the media targets are set. maxLateness is the limit in ms, at
// p99, for the lateness of the benchmark's own end: half a packet.
const (
	targetLoad  = 200
	maxLateness = 10
)

// addMedia adds the cost of calls to f.
func addMedia(f *result.File, results []bench.MediaResult) {
	floor := map[int]bench.MediaResult{}
	var late []float64
	for _, r := range results {
		for _, d := range r.FarLate {
			late = append(late, millis(d))
		}
		if r.Design == bench.Floor {
			floor[r.Calls] = r
		}
		at := func(m result.Metric, bounds ...result.Bound) {
			m.Name, m.What, m.Calls = string(r.Design)+"_"+m.Name, string(r.Design)+": "+m.What, r.Calls
			if r.Design == bench.Legs && r.Calls == targetLoad {
				m.Bounds = bounds
			}
			f.Add(m)
		}
		at(result.Figure("cpu_ms", "CPU per call and second", "ms",
			stat.Estimate{Value: millis(r.CPU), Low: millis(r.Low), High: millis(r.High)}), result.Most("value", .8))
		at(result.Figure("packets", "packets received, of those due", "%",
			stat.Estimate{Value: 100 * r.Sent, Low: 100 * r.Least, High: 100 * max(r.Sent, r.Least)}), result.Least("value", 99.9))
		at(result.Figure("gap_p99_ms", "gap between two packets of a stream, p99", "ms", result.Exactly(millis(r.P99))))
		at(result.Figure("gap_p999_ms", "gap between two packets of a stream, p99.9", "ms",
			stat.Estimate{Value: millis(r.P999), Low: millis(r.P999), High: millis(r.Worst)}), result.Most("value", 22))
		at(result.Figure("rss_kib", "memory per call", "KiB", result.Exactly(float64(r.RSS)/1024)), result.Most("value", 256))
		if base := floor[r.Calls]; r.Design == bench.Legs && base.CPU > 0 {
			at(result.Figure("cpu_x_floor", "CPU, as a multiple of the CPU of the design floor", "×",
				result.Exactly(float64(r.CPU)/float64(base.CPU))),
				result.Most("value", 3))
		}
	}
	f.CheckGenerator("far end's clock", late, maxLateness)
}

// Plane is the measured process of the media benchmark.
type Plane struct {
	Design string `arg:""`
}

// Run implements the command.
func (c Plane) Run(ctx context.Context, t *Terminal) error {
	return bench.Plane(ctx, bench.Design(c.Design), t.In, t.Out)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
