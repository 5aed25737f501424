package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/load"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/bench/turns"
)

// selfCommand returns a command that runs this test binary as parley.
func selfCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = []string{"PARLEYTEST_ROLE=parley"}
	return cmd
}

// TestBenchWeb runs the web benchmark against its own server. It does not check latency: the machine may be busy.
func TestBenchWeb(t *testing.T) {
	s, err := scenario.Parse("x", []byte("like: web\nexchanges: 2\nexpect: [dead_turns.times<=0, untold.times<=0, ended_callee_hangup.share>=100]"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, err := os.Create(filepath.Join(t.TempDir(), "log")) // logs of several processes
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := turns.Options{Seed: corpus.Development, Log: log, Child: selfCommand}
	var f result.File
	missed, err := turns.Play(t.Context(), &out, o, s, &f)
	if err != nil || missed > 0 {
		lines, _ := os.ReadFile(log.Name())
		t.Fatalf("%d missed, %v\n%s\n%s", missed, err, out.String(), lines)
	}
	if len(f.Turns) != 2 {
		t.Fatalf("%d turns", len(f.Turns))
	}
	for _, x := range f.Turns {
		if x.Figures["turn_ms"] <= 0 || x.Figures["ear_ms"] <= x.Figures["wire_ms"] || len(x.Phases) == 0 {
			t.Errorf("%+v", x)
		}
	}
}

// TestBenchLoad runs the load benchmark with a few calls. It does not check latency: the machine may be busy.
func TestBenchLoad(t *testing.T) {
	var out bytes.Buffer
	log, err := os.Create(filepath.Join(t.TempDir(), "log")) // logs of several processes
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := load.Options{
		Steps: []int{3, 4}, Length: 2 * time.Second, Hold: 15 * time.Second, Ramp: time.Second, Settle: time.Second, Out: &out, Log: log,
		Bar:   func(string) func(done, all int) { return func(int, int) {} },
		Child: selfCommand,
	}
	f, err := result.Measure(t.Context(), "load", "test", nil, func(f *result.File) error { return load.Run(t.Context(), o, f) })
	if err != nil {
		lines, _ := os.ReadFile(log.Name())
		t.Fatalf("%v\n%s\n%s", err, out.String(), lines)
	}
	for name, least := range map[string]int{"overhead_ms": 1, "packets_missing": 400, "calls_failed": 3, "cpu_ms": 1} {
		if m, ok := f.Find(name, 3); !ok || m.N() < least {
			t.Errorf("%s has %d values, want at least %d", name, m.N(), least)
		}
	}
	if m, _ := f.Find("calls_failed", 3); m.Count.Times > 0 {
		t.Errorf("%d of %d calls failed: %v", m.Count.Times, m.Count.N, f.Notes)
	}
	if f.Limit == "" || len(f.Turns) == 0 || len(f.Turns[0].Sound) == 0 || len(f.Turns[0].Phases) == 0 {
		t.Errorf("limit %q, %d turns; want a limit, and audio and phases of the slowest turn", f.Limit, len(f.Turns))
	}
}
