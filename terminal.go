package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	bench "github.com/parley-voice/parley/bench/benchcli"
	"github.com/parley-voice/parley/control/admincli"
)

func (e *env) bench() *bench.Terminal {
	return &bench.Terminal{
		In: os.Stdin, Out: e.out, Errs: e.errs, Version: version,
		Bar: func(unit string) func(done, all int) { return progressBar(e.errs, unit) },
	}
}

// console returns the input and output of commands that ask questions.
func (e *env) console() *admincli.Console {
	return &admincli.Console{In: os.Stdin, Out: e.out, Errs: e.errs, Ask: isTerminal(os.Stdin)}
}

func isTerminal(out any) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS) // /dev/null is a character device, too
	return err == nil
}

// progressBar returns a function that draws a progress bar if out is a terminal. Otherwise the function does nothing.
func progressBar(out io.Writer, unit string) func(done, all int) {
	if !isTerminal(out) {
		return func(int, int) {}
	}
	const width = 32
	began := time.Now()
	return func(done, all int) {
		left := time.Duration(float64(time.Since(began)) / float64(max(1, done)) * float64(all-done)).Round(time.Second)
		full := width * done / max(1, all)
		fmt.Fprintf(out, "\r  %s%s %d/%d %s, %s left \x1b[K", strings.Repeat("█", full), strings.Repeat("░", width-full), done, all, unit, left)
		if done == all {
			fmt.Fprint(out, "\r\x1b[K")
		}
	}
}
