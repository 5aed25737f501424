package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/bench/machine"
)

// MediaOptions configure Media.
type MediaOptions struct {
	Calls  []int         // concurrent calls of each step
	Runs   int           // runs per design; the designs alternate, and the median counts
	Warm   time.Duration // time before each measurement that is not counted
	Length time.Duration // length of each measurement
	// Child returns a command that calls Plane with d.
	Child func(ctx context.Context, d Design) *exec.Cmd
	// Progress is called after every run; nil disables it.
	Progress func(done, all int)
}

// A MediaResult is the cost of one design at one load. Fields are medians over the runs unless noted.
type MediaResult struct {
	Calls     int
	Design    Design
	CPU       time.Duration // CPU time of the process per call and second
	Low, High time.Duration // smallest and largest CPU of a run
	Sent      float64       // packets that arrived divided by packets that were due
	Least     float64       // smallest Sent of a run
	P99, P999 time.Duration // p99 and p99.9 of the gap between two packets of one stream
	Worst     time.Duration // largest P999 of a run
	RSS       int64         // resident bytes per call, without the memory of the idle process
	Late      int64         // media clock ticks that were more than 10 ms late; maximum of the runs
	// FarLate is the lateness of each clock tick of the benchmark's own end, from all runs.
	FarLate []time.Duration
}

// Media measures the cost of a call for every design and load.
func Media(ctx context.Context, o MediaOptions) ([]MediaResult, error) {
	designs := []Design{Floor, Legs}
	all, done := len(o.Calls)*len(designs)*o.Runs, 0
	var results []MediaResult
	for _, n := range o.Calls {
		runs := map[Design][]MediaResult{}
		for range o.Runs {
			for _, d := range designs {
				r, err := o.run(ctx, d, n)
				if err != nil {
					return nil, fmt.Errorf("%s, %d calls: %w", d, n, err)
				}
				runs[d] = append(runs[d], r)
				if done++; o.Progress != nil {
					o.Progress(done, all)
				}
			}
		}
		for _, d := range designs {
			results = append(results, median(runs[d]))
		}
	}
	return results, nil
}

func median(runs []MediaResult) MediaResult {
	m := MediaResult{Calls: runs[0].Calls, Design: runs[0].Design}
	m.Low, m.CPU, m.High = spread(runs, func(r MediaResult) time.Duration { return r.CPU })
	m.Least, m.Sent, _ = spread(runs, func(r MediaResult) float64 { return r.Sent })
	_, m.P99, _ = spread(runs, func(r MediaResult) time.Duration { return r.P99 })
	_, m.P999, m.Worst = spread(runs, func(r MediaResult) time.Duration { return r.P999 })
	_, m.RSS, _ = spread(runs, func(r MediaResult) int64 { return r.RSS })
	for _, r := range runs {
		m.FarLate = append(m.FarLate, r.FarLate...)
	}
	_, _, m.Late = spread(runs, func(r MediaResult) int64 { return r.Late })
	return m
}

// spread returns the minimum, median and maximum of a figure.
func spread[T cmp.Ordered](runs []MediaResult, figure func(MediaResult) T) (low, mid, high T) {
	var all []T
	for _, r := range runs {
		all = append(all, figure(r))
	}
	slices.Sort(all)
	return all[0], all[len(all)/2], all[len(all)-1]
}

// A child is the measured process.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func (o MediaOptions) start(ctx context.Context, d Design, ports []int) (*child, []int, error) {
	c := &child{cmd: o.Child(ctx, d)}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	c.cmd.Stderr = os.Stderr
	c.lines = bufio.NewScanner(out)
	c.lines.Buffer(nil, 1<<20)
	if err := c.cmd.Start(); err != nil {
		return nil, nil, err
	}
	var own []int
	if err := c.ask(ports, &own); err != nil {
		c.end()
		return nil, nil, err
	}
	return c, own, nil
}

// ask writes question as a JSON line and decodes the reply line into answer.
func (c *child) ask(question, answer any) error {
	if err := json.NewEncoder(c.in).Encode(question); err != nil {
		return err
	}
	if !c.lines.Scan() {
		return fmt.Errorf("the measured process ended: %w", c.lines.Err())
	}
	return json.Unmarshal(c.lines.Bytes(), answer)
}

func (c *child) end() {
	_ = c.in.Close()
	_ = c.cmd.Wait() // the process writes its errors to stderr
}

// run measures one design once.
func (o MediaOptions) run(ctx context.Context, d Design, n int) (MediaResult, error) {
	far, err := openStreams(n)
	if err != nil {
		return MediaResult{}, err
	}
	defer far.Close()
	c, ports, err := o.start(ctx, d, far.Ports())
	if err != nil {
		return MediaResult{}, err
	}
	defer c.end()
	var measuring atomic.Bool
	stop, over := make(chan struct{}), make(chan streamReport, 1)
	go func() { over <- far.Run(ports, stop, func(time.Time) bool { return measuring.Load() }) }()
	machine.Sleep(ctx, o.Warm)
	var before, after usage
	err = c.ask("usage", &before)
	measuring.Store(true)
	began := time.Now()
	machine.Sleep(ctx, o.Length)
	measuring.Store(false)
	took := time.Since(began)
	if err == nil {
		err = c.ask("usage", &after)
	}
	close(stop)
	report := <-over
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return MediaResult{}, err
	}
	due := float64(n) * took.Seconds() * 50
	return MediaResult{
		Calls: n, Design: d, CPU: time.Duration(float64(after.CPU-before.CPU) / (float64(n) * took.Seconds())),
		Sent: float64(report.Received) / due, P99: report.Quantile(0.99), P999: report.Quantile(0.999),
		RSS: (after.RSS - after.Idle) / int64(n), Late: after.Late - before.Late, FarLate: report.Late,
	}, nil
}
