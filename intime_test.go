package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/mediatest"
)

const (
	trials  = 3
	tooLate = 30 * time.Millisecond // one and a half frames: an audible gap
)

// inTime runs a test with audio in real time. A busy machine can lose audio although the code is correct. inTime
// therefore repeats a failed trial, up to three trials in all, if the machine was measurably late. No other trial runs
// beside a repeated one. A failure on a machine that was in time fails the test at once.
func inTime(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	inTimeWithin(t, tooLate, test)
}

// inTimeWithin is like inTime with another limit for the delay of the machine.
func inTimeWithin(t *testing.T, bound time.Duration, test func(t testing.TB)) {
	t.Helper()
	for n := 1; ; n++ {
		tr := &trial{TB: t}
		lock, unlock := running.RLock, running.RUnlock
		if n > 1 {
			lock, unlock = running.Lock, running.Unlock
		}
		lock()
		late := mediatest.MeasureLateness()
		tr.run(test)
		worst := late()
		unlock()
		if t.Skipped() {
			runtime.Goexit()
		}
		if !tr.failed.Load() {
			return
		}
		if worst < bound || n == trials {
			t.Fatalf("trial %d failed, on a machine that was up to %v late", n, worst)
		}
		t.Logf("the machine was up to %v late: repeating the trial", worst)
		repeats.add(t.Name())
	}
}

// running is held while a trial runs, and alone by a repeated one.
var running sync.RWMutex

// repeats counts the repeated trials by test. They are printed after all tests, because a rising number can hide a
// fault.
var repeats repeatCounts

type repeatCounts struct {
	mu sync.Mutex
	by map[string]int
}

func (r *repeatCounts) add(test string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]int{}
	}
	r.by[test]++
}

func (r *repeatCounts) print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, times := range r.by {
		n += times
	}
	fmt.Fprintf(w, "inTime: %d trials repeated because the machine was late\n", n)
	for _, test := range slices.Sorted(maps.Keys(r.by)) {
		fmt.Fprintf(w, "  %s: %d\n", test, r.by[test])
	}
}

// TestRepeatsAreCounted checks that repeated trials are counted and printed.
func TestRepeatsAreCounted(t *testing.T) {
	var r repeatCounts
	for _, test := range []string{"TestB", "TestA", "TestB"} {
		r.add(test)
	}
	var out bytes.Buffer
	r.print(&out)
	if want := "inTime: 3 trials repeated because the machine was late\n  TestA: 1\n  TestB: 2\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// trial is a run that may be repeated. It logs errors instead of failing the test. A skip ends the test.
type trial struct {
	testing.TB
	failed   atomic.Bool
	cleanups []func()
}

func (t *trial) run(test func(testing.TB)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range slices.Backward(t.cleanups) {
				f()
			}
		}()
		test(t)
	}()
	<-done
}

func (t *trial) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *trial) Fail()                     { t.failed.Store(true) }
func (t *trial) FailNow()                  { t.Fail(); runtime.Goexit() }
func (t *trial) Failed() bool              { return t.failed.Load() }
func (t *trial) Error(args ...any)         { t.Helper(); t.Log(args...); t.Fail() }
func (t *trial) Errorf(f string, a ...any) { t.Helper(); t.Logf(f, a...); t.Fail() }
func (t *trial) Fatal(args ...any)         { t.Helper(); t.Log(args...); t.FailNow() }
func (t *trial) Fatalf(f string, a ...any) { t.Helper(); t.Logf(f, a...); t.FailNow() }
