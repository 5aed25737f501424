// Package command is what the bench's commands do. The fields of a command are
// its arguments.
package command

import (
	"context"
	"io"
	"os"
	"os/exec"

	"github.com/parley-voice/parley/bench/result"
)

// Bench holds the commands of the bench.
type Bench struct {
	All       All       `cmd:"" help:"All of it, as docs/benchmarks.md has it, and a page of it; goes on where it was stopped."`
	Media     Media     `cmd:"" help:"What a call costs on the wire, beside the bare floor in the same run."`
	Turns     Turns     `cmd:"" help:"How long callers wait for an answer, and how much of it is ours."`
	Vad       Vad       `cmd:"" help:"How well voice activity is told, as docs/vad.md has it."`
	API       API       `cmd:"" help:"How many orders a second are accepted, and how soon calls and lists of them are read."`
	Load      Load      `cmd:"" help:"How many calls at a time a server holds, the whole pipeline on each, and what limits it."`
	Campaigns Campaigns `cmd:"" help:"How evenly campaigns call, and how soon."`
	Amd       Amd       `cmd:"" help:"How well and how soon it is told who answered, as docs/answering-machines.md has it."`
	Endings   Endings   `cmd:"" help:"How well it is told that a caller has finished, on transcripts of yours."`

	Scenarios Scenarios `cmd:"" help:"List the scenarios that bench turns --scenario plays."`
	Providers Providers `cmd:"" help:"Play recognizers, models and voices, with scripted delays and faults, for any voice system."`

	Compare Compare `cmd:"" help:"By how much two runs differ, and what of it is beyond noise."`
	Gate    Gate    `cmd:"" help:"Hold results to bounds, and fail where one does not hold."`
	Report  Report  `cmd:"" help:"Make one page of results, with plots and the sound of the worst turns."`

	Docs    Docs    `cmd:"" hidden:""`
	Plane   Plane   `cmd:"" hidden:""`
	Gateway Gateway `cmd:"" hidden:""`
	Fakes   Fakes   `cmd:"" hidden:""`
}

// A Terminal is where commands run: what they read and write, and the program
// that they start again as other processes.
type Terminal struct {
	In        io.Reader
	Out, Errs io.Writer
	Version   string
	// Bar draws how much of a long work is done, in a unit.
	Bar func(unit string) func(done, all int)
}

// Child is a command of this program.
func (t *Terminal) Child(ctx context.Context, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(ctx, self, args...) //nolint:gosec // ourselves
}

// measure measures, prints what is to be known of the run, writes the result to a
// file where one is named, and fails where it does not count.
func (t *Terminal) measure(ctx context.Context, command string, options any, file string, do func(*result.File) error) error {
	f, err := result.Measure(ctx, command, t.Version, options, do)
	if err != nil {
		return err
	}
	if err = f.Doubts(t.Out); err != nil {
		return err
	}
	if file != "" {
		if err = f.Write(file); err != nil {
			return err
		}
	}
	return f.Err()
}
