// Command parley places phone calls and talks on them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // a host's old zone data must not shift a legal window

	"github.com/alecthomas/kong"

	bench "github.com/parley-voice/parley/bench/command"
	"github.com/parley-voice/parley/campaigns/command"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/desk"
	"github.com/parley-voice/parley/control/recording"
)

// version is set by the linker.
var version = "dev"

// cli is the command line. Each sub-command has a file of its own.
type cli struct {
	Config string `help:"Read settings from FILE; the environment wins." placeholder:"FILE"`

	Serve    serveCmd         `cmd:"" help:"Serve the API, dial and talk, until SIGTERM."`
	Demo     demoCmd          `cmd:"" help:"Place one real call on this machine, show it, and keep serving."`
	Apply    applyCmd         `cmd:"" help:"Create or update what an operator owns, from a YAML file."`
	Key      keyCmd           `cmd:"" help:"API keys."`
	Operator desk.Operator    `cmd:"" help:"Operators of the dashboard."`
	Agent    desk.Agent       `cmd:"" help:"Agents."`
	Call     desk.Call        `cmd:"" help:"Calls."`
	Webhook  desk.Webhook     `cmd:"" help:"Webhook endpoints, and the notices on their way to them."`
	Campaign command.Campaign `cmd:"" help:"Campaigns."`
	Simulate command.Simulate `cmd:"" help:"Run campaigns through years of virtual time, and have every call judged."`
	DNC      command.DNC      `cmd:"" name:"dnc" help:"Do-not-call lists."`
	Market   command.Market   `cmd:"" help:"Rules of markets."`
	Erase    desk.Erase       `cmd:"" help:"Erase calls: what was said in them, their recordings and notices."`
	Replay   replayCmd        `cmd:"" help:"Step the turn machine through a call's turn log."`
	Bench    bench.Bench      `cmd:"" help:"Measure."`
	Version  versionCmd       `cmd:"" help:"Print the version."`
}

// world is what a sub-command gets from its process.
type world struct {
	context.Context //nolint:containedctx // the process's own, an argument of every command
	out, errs       io.Writer
	environ         []string
	file            string
	close           func() // the database that a command asked for; nil where none did
}

// desk opens what most commands work with.
func (w *world) desk() (*desk.Desk, error) {
	c, d, calls, err := w.opened()
	if err != nil {
		return nil, err
	}
	return &desk.Desk{Pool: d.Pool, AllowInsecure: c.AllowInsecureWebhooks, Bucket: calls, In: os.Stdin, Out: w.out}, nil
}

// opened opens the configuration's database and bucket, until the command ends.
func (w *world) opened() (c config.Config, d *db.DB, files recording.Bucket, err error) {
	if c, err = w.config(); err != nil {
		return c, nil, nil, err
	}
	if files, err = bucket(c); err != nil {
		return c, nil, nil, err
	}
	if d, err = w.database(c); err != nil {
		return c, nil, nil, err
	}
	w.close = d.Close
	return c, d, files, nil
}

// config loads what the operator set.
func (w *world) config() (config.Config, error) {
	c, err := config.Load(w.file, w.environ)
	if err != nil {
		return c, configError{err}
	}
	return c, nil
}

// configError marks what the operator must mend.
type configError struct{ error }

// log writes lines that people read.
func (w *world) log(level string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // config.Load checked it
	return slog.New(slog.NewTextHandler(w.errs, &slog.HandlerOptions{Level: l}))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(&world{Context: ctx, out: os.Stdout, errs: os.Stderr, environ: os.Environ()}, os.Args[1:])
	stop()
	os.Exit(code)
}

// run runs one command line and returns its exit code: 0, 1 where it failed,
// and 2 where the command line or the configuration is wrong.
func run(w *world, args []string) int {
	var c cli
	exit := -1
	parser, err := kong.New(&c, kong.Name("parley"), kong.Writers(w.out, w.errs), kong.Exit(func(code int) { exit = code }),
		kong.Description("Outbound phone calls handled by a voice agent."), kong.UsageOnError(),
		kong.BindTo(w.Context, (*context.Context)(nil)), kong.BindSingletonProvider(w.desk), kong.BindSingletonProvider(w.operate), kong.BindSingletonProvider(w.client), kong.BindSingletonProvider(w.terminal), kong.BindSingletonProvider(w.bench))
	if err != nil {
		fmt.Fprintln(w.errs, "parley:", err)
		return 2
	}
	ctx, err := parser.Parse(args)
	if exit >= 0 { // --help was asked
		return exit
	}
	if err != nil {
		fmt.Fprintln(w.errs, "parley:", err)
		return 2
	}
	w.file = c.Config
	err = ctx.Run(w)
	if w.close != nil {
		w.close()
	}
	var wrong configError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintln(w.errs, "parley:", err)
		return 2
	case err != nil && !errors.Is(err, context.Canceled):
		fmt.Fprintln(w.errs, "parley:", err)
		return 1
	default:
		return 0
	}
}
