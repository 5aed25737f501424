// Package load finds how many concurrent calls a "parley serve" carries. It requests calls over
// HTTP at fixed times, independent of the server's speed, answers them over SIP and RTP, and
// talks with the agent. Server and fake providers are separate processes.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-voice/parley/bench/callee"
	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/providers"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/server"
	"github.com/parley-voice/parley/bench/stat"
	"github.com/parley-voice/parley/sip/siptest"
)

// A bench is a running load test.
type bench struct {
	Options

	server  *server.Server
	fakes   int // process ID
	idle    int64
	scripts [][]callee.Line
	current atomic.Pointer[step]
	clock   ticks
	next    int // number of the next call
}

// ticks records how late the callees' clock is during a step.
type ticks struct {
	mu   sync.Mutex // rarely contended, because take runs only twice per step
	late []float64
}

func (t *ticks) Tick(due time.Time) {
	t.mu.Lock()
	t.late = append(t.late, millis(time.Since(due)))
	t.mu.Unlock()
}

// take returns and clears the recorded values.
func (t *ticks) take() []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.late
	t.late = make([]float64, 0, len(late))
	return late
}

// Run measures and prints the steps, up to the first that exceeds the server's capacity, and adds
// the metrics to f.
func Run(ctx context.Context, o Options, f *result.File) (err error) {
	if err = o.Check(); err != nil {
		return err
	}
	b := &bench{Options: o}
	// The run measures what the machine carries, so the server must not limit its calls.
	stop, err := b.open(ctx, "PARLEY_LIMIT_LOAD=false")
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	return b.steps(ctx, f)
}

// open starts the callees, the fake providers and the server. Call stop even after an error.
func (b *bench) open(ctx context.Context, settings ...string) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var all []error
		for _, s := range slices.Backward(stops) {
			all = append(all, s())
		}
		return errors.Join(all...)
	}
	for n := range 64 {
		b.scripts = append(b.scripts, script(n))
	}
	transport, closeMedia, err := gateway.OpenMedia(ctx, gateway.Loopback(), &b.clock)
	if err != nil {
		return stop, err
	}
	stops = append(stops, func() error { closeMedia(); return nil })
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Media: transport, Answer: b.answer}
	if err = carrier.Start(); err != nil {
		return stop, err
	}
	stops = append(stops, carrier.Close)
	cmd := b.Child(ctx, "bench", "fakes")
	cmd.Stderr = b.Log
	fakes, end, err := gateway.StartFakes(cmd, providers.Typical())
	if err != nil {
		return stop, err
	}
	stops = append(stops, func() error { end(); return nil })
	b.fakes = cmd.Process.Pid
	b.server = &server.Server{Child: b.Child, Log: b.Log, Settings: append(settings, "PARLEY_FAKE_URL="+fakes)}
	stops = append(stops, b.server.Stop)
	if err = b.server.Start(ctx); err != nil {
		return stop, err
	}
	if err = b.server.Configure(ctx, "bench", operator(carrier.Proxy())); err != nil {
		return stop, err
	}
	if _, err = b.server.ReadMetrics(ctx, "/debug/pprof/heap?gc=1"); err != nil { // frees memory of the startup
		return stop, err
	}
	b.idle = machine.RSS(b.server.PID)
	return stop, nil
}

// steps measures the steps in order.
func (b *bench) steps(ctx context.Context, f *result.File) error {
	fmt.Fprintln(b.Out, head)
	var done []*stepResult
	var why []string
	for _, calls := range b.Steps {
		b.clock.take()
		m, err := b.step(ctx, b.plan(calls), nil)
		if err != nil {
			return err
		}
		m.ticks = b.clock.take()
		done = append(done, m)
		why = m.knee(done[0])
		fmt.Fprintln(b.Out, m.line(done[0], why))
		if err = b.addStep(ctx, f, m, done[0]); err != nil {
			return err
		}
		if len(why) > 0 || m.punctuality().P99.Value > maxLateness {
			break
		}
	}
	b.conclude(f, done, why)
	if b.Profile == "" {
		return nil
	}
	return b.profile(ctx, done[len(done)-1].plan)
}

// slowest is the number of turns per step that are stored with audio.
const slowest = 2

// addStep adds a step to the file.
func (b *bench) addStep(ctx context.Context, f *result.File, m, first *stepResult) error {
	for _, x := range m.metrics(first) {
		f.Add(x)
	}
	for i, t := range m.turns {
		row, err := t.row(ctx, b, m.calls, i < slowest)
		if err != nil {
			return err
		}
		f.Turns = append(f.Turns, row)
	}
	if m.failed != nil {
		f.Note("%d calls: %v", m.calls, m.failed)
	}
	return nil
}

// conclude adds the number of calls that the server carried, and the bottleneck.
func (b *bench) conclude(f *result.File, done []*stepResult, why []string) {
	last := done[len(done)-1]
	late := last.punctuality().P99.Value > maxLateness
	held := last
	if late || len(why) > 0 {
		held = nil
		if len(done) > 1 {
			held = done[len(done)-2]
		}
	}
	f.Limit = last.limit(why, late)
	most := result.Figure("calls_held", "concurrent calls carried", "", result.Exactly(0), result.Least("value", targetLoad))
	if most.More = true; held != nil {
		most.Figure.Value, most.Figure.Low, most.Figure.High = float64(held.calls), float64(held.calls), float64(held.calls)
		f.Add(result.Spread("overhead_ms", fmt.Sprintf("overhead on the wire, %d calls", held.calls), "ms", held.overhead()))
		f.CheckGenerator("clock", held.ticks, maxLateness)
	} else {
		f.CheckGenerator("clock", last.ticks, maxLateness)
	}
	f.Add(most)
	if late && len(why) == 0 {
		f.Refuse("the load generator was the bottleneck: with %d calls its clock was more than %d ms late (p99); the server's limit is unknown",
			last.calls, maxLateness)
	}
}

// profile repeats a step and stores a CPU profile of the server during it.
func (b *bench) profile(ctx context.Context, p plan) error {
	p.to = max(p.to, p.from+profileTime+time.Second)
	var got []byte
	_, err := b.step(ctx, p, func(ctx context.Context) (err error) {
		got, err = b.server.ReadMetrics(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(profileTime.Seconds())))
		return err
	})
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	fmt.Fprintf(b.Out, "CPU profile with %d calls: go tool pprof -top %s\n", p.calls, b.Profile)
	return os.WriteFile(b.Profile, got, 0o600)
}

// profileTime is the duration of the profile.
const profileTime = 10 * time.Second

// pauses are the garbage collector pauses of the server since its start.
type pauses struct {
	n   int
	all []float64 // pauses in ms; the last 256 in a ring
}

// pauses reads the server's garbage collector pauses; none if that fails.
func (b *bench) pauses(ctx context.Context) pauses {
	text, err := b.server.ReadMetrics(ctx, "/debug/pprof/heap?debug=1")
	if err != nil {
		return pauses{}
	}
	return readPauses(text)
}

// readPauses parses the end of a heap profile in text form.
func readPauses(text []byte) pauses {
	var p pauses
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), " = ")
		switch key {
		case "# NumGC":
			p.n, _ = strconv.Atoi(value) // 0 if the text is malformed
		case "# PauseNs":
			for ns := range strings.FieldsSeq(strings.Trim(value, "[]")) {
				v, _ := strconv.ParseFloat(ns, 64)
				p.all = append(p.all, v/1e6)
			}
		}
	}
	return p
}

// since returns the pauses after o was read. The ring holds only the last 256.
func (p pauses) since(o pauses) []float64 {
	var all []float64
	for n := max(o.n, p.n-len(p.all)); n < p.n && len(p.all) > 0; n++ {
		all = append(all, p.all[n%len(p.all)])
	}
	return all
}

func cores() int { return runtime.NumCPU() }

const head = "calls  turns  overhead p50     p95     p99   p95 above  packets   late  " +
	"CPU ms/call-s  KiB/call  GC p99  jitter p99  server  machine"

// line formats the step for the table.
func (m *stepResult) line(first *stepResult, why []string) string {
	q := func(values []float64, p float64) float64 {
		return stat.Quantile(slices.Sorted(slices.Values(values)), p)
	}
	text := fmt.Sprintf("%5d  %5d  %9.1f ms  %6.1f  %6.1f  %+7.1f ms  %6.2f%%  %4.2f%%  %13.2f  %8.0f  %6.2f  %7.1f ms  %5.0f%%  %6.0f%%",
		m.calls, len(m.own), q(m.own, .5), q(m.own, .95), q(m.own, .99), m.p95()-first.p95(),
		100*part(m.came, m.due), 100*part(m.lateCame, m.due), m.cpu, m.memory, q(m.gc, .99), q(m.jitter, .99),
		100*(m.shares.server+m.shares.postgres), 100*m.shares.all)
	if len(why) > 0 {
		text += "  ← too many"
	}
	return text
}
