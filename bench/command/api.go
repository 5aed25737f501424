package command

import (
	"context"
	"time"

	"github.com/parley-voice/parley/bench/api"
	"github.com/parley-voice/parley/bench/result"
)

// API measures the HTTP API.
type API struct {
	Database string        `help:"Postgres to use; it is filled with calls. Without it, one of its own." placeholder:"URL"`
	Length   time.Duration `help:"How long each is measured." default:"20s"`
	Stored   int           `help:"Calls that lists go over; 0 measures none." default:"1000000"`
	JSON     string        `help:"Write the result to this file." placeholder:"FILE"`
}

// Run measures the API.
func (c API) Run(ctx context.Context, t *Terminal) error {
	database := c.Database
	c.Database = "" // may hold a password: not for the file
	return t.measure(ctx, "api", c, c.JSON, func(f *result.File) error {
		return api.Run(ctx, api.Options{
			Database: database, Subgroups: 20, Rate: 500, Clients: 16, Length: c.Length, Stored: c.Stored, Page: 50,
			Out: t.Out, Log: t.Errs, Child: t.Child, Result: f,
		})
	})
}
