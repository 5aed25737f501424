// Package load finds how many calls a parley serve holds at a time, with the
// whole pipeline on each: it orders them over HTTP, at fixed times whatever the
// server does, answers them over SIP and RTP, and listens. Server and fake
// providers are other processes.
package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/parley-voice/parley/bench/served"
	"github.com/parley-voice/parley/bench/stat"
	"github.com/parley-voice/parley/sip/siptest"
)

// A bench is a load test under way.
type bench struct {
	Options

	server  *served.Server
	fakes   int // their process
	idle    int64
	scripts [][]callee.Line
	current atomic.Pointer[step]
	clock   ticks
	next    int // call
}

// ticks keeps how late the callees' clock is, for one step after the other.
type ticks struct {
	mu   sync.Mutex // never waited for long: it is taken twice a step
	late []float64
}

// Tick implements pace.Stream.
func (t *ticks) Tick(due time.Time) {
	t.mu.Lock()
	t.late = append(t.late, millis(time.Since(due)))
	t.mu.Unlock()
}

// take empties what was kept.
func (t *ticks) take() []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	late := t.late
	t.late = make([]float64, 0, len(late))
	return late
}

// Run measures one step after the other, up to the first that is beyond the knee,
// prints each, and puts all of it into f.
func Run(ctx context.Context, o Options, f *result.File) (err error) {
	if err = o.Check(); err != nil {
		return err
	}
	b := &bench{Options: o}
	for n := range 64 {
		b.scripts = append(b.scripts, script(n))
	}
	transport, stop, err := gateway.OpenMedia(ctx, gateway.Loopback(), &b.clock)
	if err != nil {
		return err
	}
	defer stop()
	carrier := &siptest.Carrier{Listen: "127.0.0.1:0", Media: transport, Answer: b.answer}
	if err = carrier.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, carrier.Close()) }()
	fakes, end, err := b.startFakes(ctx)
	if err != nil {
		return err
	}
	defer end()
	b.server = &served.Server{Child: o.Child, Log: o.Log, Settings: []string{"PARLEY_FAKE_URL=" + fakes}}
	defer func() { err = errors.Join(err, b.server.Stop()) }()
	if err = b.server.Start(ctx); err != nil {
		return err
	}
	if err = b.server.Furnish(ctx, "bench", operator(carrier.Proxy())); err != nil {
		return err
	}
	if _, err = b.server.Look(ctx, "/debug/pprof/heap?gc=1"); err != nil { // without what its start left behind
		return err
	}
	b.idle = machine.RSS(b.server.PID)
	return b.steps(ctx, f)
}

// startFakes plays the providers in a process of their own.
func (b *bench) startFakes(ctx context.Context) (addr string, end func(), err error) {
	cmd := b.Child(ctx, "bench", "fakes")
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	cmd.Stderr = b.Log
	if err = cmd.Start(); err != nil {
		return "", nil, err
	}
	b.fakes = cmd.Process.Pid
	end = func() {
		_ = in.Close()
		_ = cmd.Wait() // its last words are in the log
	}
	if err = json.NewEncoder(in).Encode(providers.Typical()); err == nil {
		addr, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		end()
		return "", nil, fmt.Errorf("fake providers: %w", err)
	}
	return strings.TrimSpace(addr), end, nil
}

// steps climbs.
func (b *bench) steps(ctx context.Context, f *result.File) error {
	fmt.Fprintln(b.Out, head)
	var done []*measured
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
		if err = b.keep(ctx, f, m, done[0]); err != nil {
			return err
		}
		if len(why) > 0 || m.punctuality().P99.Value > punctual {
			break
		}
	}
	b.conclude(f, done, why)
	if b.Profile == "" {
		return nil
	}
	return b.profile(ctx, done[len(done)-1].plan)
}

// slowest is how many turns of a step are kept with their sound.
const slowest = 2

// keep puts a step into the file.
func (b *bench) keep(ctx context.Context, f *result.File, m, first *measured) error {
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

// conclude says how many calls were held, and what was in the way of more.
func (b *bench) conclude(f *result.File, done []*measured, why []string) {
	last := done[len(done)-1]
	late := last.punctuality().P99.Value > punctual
	held := last
	if late || len(why) > 0 {
		held = nil
		if len(done) > 1 {
			held = done[len(done)-2]
		}
	}
	f.Limit = last.limit(why, late)
	most := result.Figure("calls_held", "calls held at a time", "", result.Exactly(0), result.Least("value", aimed))
	if most.More = true; held != nil {
		most.Figure.Value, most.Figure.Low, most.Figure.High = float64(held.calls), float64(held.calls), float64(held.calls)
		f.Add(result.Spread("overhead_ms", fmt.Sprintf("overhead on the wire, of the %d calls held", held.calls), "ms", held.overhead()))
		f.Generated("clock's ticks", held.ticks, punctual)
	} else {
		f.Generated("clock's ticks", last.ticks, punctual)
	}
	f.Add(most)
	if late && len(why) == 0 {
		f.Refuse("the load generator was the bottleneck: with %d calls its clock's ticks were more than %d ms late (p99), so it is not known what the server holds", last.calls, punctual)
	}
}

// profile has a step's load on again, and takes the server's CPU profile.
func (b *bench) profile(ctx context.Context, p plan) error {
	p.to = max(p.to, p.from+profiled+time.Second)
	var got []byte
	_, err := b.step(ctx, p, func(ctx context.Context) (err error) {
		got, err = b.server.Look(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(profiled.Seconds())))
		return err
	})
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	fmt.Fprintf(b.Out, "profile of the server under %d calls: go tool pprof -top %s\n", p.calls, b.Profile)
	return os.WriteFile(b.Profile, got, 0o600)
}

// profiled is how long a profile is.
const profiled = 10 * time.Second

// pauses are those of a garbage collector so far.
type pauses struct {
	n   int
	all []float64 // ms, the last 256 in a ring
}

// pauses reads them; none where it cannot.
func (b *bench) pauses(ctx context.Context) pauses {
	text, err := b.server.Look(ctx, "/debug/pprof/heap?debug=1")
	if err != nil {
		return pauses{}
	}
	return readPauses(text)
}

// readPauses finds them at the end of a heap profile in text.
func readPauses(text []byte) pauses {
	var p pauses
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), " = ")
		switch key {
		case "# NumGC":
			p.n, _ = strconv.Atoi(value) // 0 where it is none
		case "# PauseNs":
			for ns := range strings.FieldsSeq(strings.Trim(value, "[]")) {
				v, _ := strconv.ParseFloat(ns, 64)
				p.all = append(p.all, v/1e6)
			}
		}
	}
	return p
}

// since are the pauses after others, as far as they are remembered.
func (p pauses) since(o pauses) []float64 {
	var all []float64
	for n := max(o.n, p.n-len(p.all)); n < p.n && len(p.all) > 0; n++ {
		all = append(all, p.all[n%len(p.all)])
	}
	return all
}

func cores() int { return runtime.NumCPU() }

const head = "calls  turns  overhead p50     p95     p99   p95 above  packets   late  CPU ms/call-s  KiB/call  GC p99  jitter p99  server  machine"

// line is the step for people.
func (m *measured) line(first *measured, why []string) string {
	q := func(values []float64, p float64) float64 {
		return stat.Quantile(slices.Sorted(slices.Values(values)), p)
	}
	text := fmt.Sprintf("%5d  %5d  %9.1f ms  %6.1f  %6.1f  %+7.1f ms  %6.2f%%  %4.2f%%  %13.2f  %8.0f  %6.2f  %7.1f ms  %5.0f%%  %6.0f%%", m.calls, len(m.own),
		q(m.own, .5), q(m.own, .95), q(m.own, .99), m.p95()-first.p95(), 100*part(m.came, m.due), 100*part(m.lateCame, m.due),
		m.cpu, m.memory, q(m.gc, .99), q(m.jitter, .99), 100*(m.shares.server+m.shares.postgres), 100*m.shares.all)
	if len(why) > 0 {
		text += "  ← knee"
	}
	return text
}
