// Package benchcli implements "parley bench". The fields of a command are its
// arguments; result files store them under these names.
package benchcli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/parley-voice/parley/bench/result"
)

// Bench holds the commands of "parley bench".
type Bench struct {
	Verbose bool `help:"Print every figure after the verdict."`

	All       All       `cmd:"" help:"Run all benchmarks and write an HTML report. Resumes an interrupted run."`
	Media     Media     `cmd:"" help:"Measure CPU and memory per call of the media path, next to bare UDP sockets."`
	Turns     Turns     `cmd:"" help:"Measure response time as callers hear it, and Parley's share of it."`
	Vad       Vad       `cmd:"" help:"Measure the accuracy of voice activity detection (docs/vad.md)."`
	API       API       `cmd:"" help:"Measure calls accepted per second, and latency of reading calls and lists."`
	Load      Load      `cmd:"" help:"Find how many concurrent calls a server carries, and what limits it."`
	Campaigns Campaigns `cmd:"" help:"Measure how evenly and how soon campaigns place calls."`
	Amd       Amd       `cmd:"" help:"Measure accuracy and delay of answering machine detection (docs/answering-machines.md)."`
	Endings   Endings   `cmd:"" help:"Measure the end-of-turn model on your transcripts."`

	Scenarios Scenarios `cmd:"" help:"List the scenarios that --scenario of bench turns accepts."`
	Providers Providers `cmd:"" help:"Serve fake speech-to-text, model and voice providers with scripted delays and faults."`

	Compare Compare `cmd:"" help:"Compare two runs, with significance."`
	Gate    Gate    `cmd:"" help:"Fail if results exceed thresholds (for CI)."`
	Report  Report  `cmd:"" help:"Write an HTML report of results, with plots and audio of the worst turns."`

	Docs    Docs    `cmd:"" hidden:""`
	Plane   Plane   `cmd:"" hidden:""`
	Gateway Gateway `cmd:"" hidden:""`
	Fakes   Fakes   `cmd:"" hidden:""`
}

// AfterApply copies the flags that all commands share into the terminal.
func (b *Bench) AfterApply(t *Terminal) error {
	t.Verbose = b.Verbose
	return nil
}

// A Terminal holds the streams of a command.
type Terminal struct {
	In        io.Reader
	Out, Errs io.Writer
	Version   string
	Verbose   bool // print details after the verdict
	// Bar returns a function that draws a progress bar; unit names what is counted.
	Bar func(unit string) func(done, all int)
}

// Child returns a command that runs this program with args.
func (t *Terminal) Child(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(ctx, self, args...) //nolint:gosec // ourselves
}

// measure runs do, prints the verdict, and writes the result to file unless file is empty. It
// prints the output of do if t.Verbose is set or do fails. It returns an error if the result is
// invalid.
func (t *Terminal) measure(
	ctx context.Context, command string, options any, file string, do func(out io.Writer, f *result.File) error,
) error {
	var details bytes.Buffer
	f, err := result.Measure(ctx, command, t.Version, options, func(f *result.File) error { return do(&details, f) })
	if err != nil {
		_, failed := details.WriteTo(t.Out)
		return errors.Join(err, failed)
	}
	if err = f.WriteVerdict(t.Out); err != nil {
		return err
	}
	if t.Verbose {
		if err = f.WriteConditions(&details); err != nil {
			return err
		}
		if _, err = details.WriteTo(t.Out); err != nil {
			return err
		}
	}
	if file != "" {
		if err = f.Write(file); err != nil {
			return err
		}
	}
	return f.Err()
}
