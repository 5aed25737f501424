package main

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/mediatest"
)

const (
	trials  = 3
	tooLate = 30 * time.Millisecond // a frame and a half: what a person would hear
)

// inTime runs a test whose words go over the wire in real time. Words that are
// lost because the machine let nobody run say nothing about the code: such a
// trial is held again, on the machine's own showing, up to three times. What
// fails while the machine was in time fails at once.
func inTime(t *testing.T, test func(t testing.TB)) {
	t.Helper()
	for n := 1; ; n++ {
		tr := &trial{TB: t}
		late := mediatest.Late()
		tr.hold(test)
		worst := late()
		if !tr.failed.Load() {
			return
		}
		if worst < tooLate || n == trials {
			t.Fatalf("trial %d failed, on a machine that was up to %v late", n, worst)
		}
		t.Logf("the machine was up to %v late: the trial is held again", worst)
	}
}

// A trial is a test that may be held again: what it finds is told, and fails
// nothing yet. A test that is skipped is skipped for good.
type trial struct {
	testing.TB
	failed   atomic.Bool
	cleanups []func()
}

func (t *trial) hold(test func(testing.TB)) {
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
	if t.Skipped() {
		runtime.Goexit()
	}
}

func (t *trial) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *trial) Fail()                     { t.failed.Store(true) }
func (t *trial) FailNow()                  { t.Fail(); runtime.Goexit() }
func (t *trial) Failed() bool              { return t.failed.Load() }
func (t *trial) Error(args ...any)         { t.Helper(); t.Log(args...); t.Fail() }
func (t *trial) Errorf(f string, a ...any) { t.Helper(); t.Logf(f, a...); t.Fail() }
func (t *trial) Fatal(args ...any)         { t.Helper(); t.Log(args...); t.FailNow() }
func (t *trial) Fatalf(f string, a ...any) { t.Helper(); t.Logf(f, a...); t.FailNow() }
