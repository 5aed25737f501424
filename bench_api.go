package main

import (
	"context"
	"os"
	"os/exec"
	"time"

	"github.com/parley-voice/parley/bench/api"
)

type benchAPICmd struct {
	Database string        `help:"Postgres to use; it is filled with calls. Without it, one of its own." placeholder:"URL"`
	Length   time.Duration `help:"How long each is measured." default:"20s"`
	Stored   int           `help:"Calls that lists go over; 0 measures none." default:"1000000"`
}

// Run measures the API.
func (c benchAPICmd) Run(w *world) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return api.Run(w, api.Options{
		Database: c.Database, Subgroups: 20, Rate: 500, Clients: 16, Length: c.Length, Stored: c.Stored, Page: 50, Out: w.out, Log: w.errs,
		Child: func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, self, args...) }, //nolint:gosec // ourselves
	})
}
