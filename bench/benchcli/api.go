package benchcli

import (
	"context"
	"io"
	"time"

	"github.com/parley-voice/parley/bench/api"
	"github.com/parley-voice/parley/bench/result"
)

// API measures the HTTP API.
type API struct {
	Database string        `help:"Postgres to use; the benchmark fills it with calls. Default: a temporary one." placeholder:"URL"`
	Length   time.Duration `help:"Duration of each measurement." default:"20s"`
	Stored   int           `help:"Stored calls for the list benchmark; 0 skips it." default:"1000000"`
	JSON     string        `help:"Write the result to this file." placeholder:"FILE"`
}

// Run implements the command.
func (c API) Run(ctx context.Context, t *Terminal) error {
	database := c.Database
	c.Database = "" // it may hold a password, so the file must not store it
	return t.measure(ctx, "api", c, c.JSON, func(out io.Writer, f *result.File) error {
		return api.Run(ctx, api.Options{
			Database: database, Subgroups: 20, Rate: 500, Clients: 16, Length: c.Length, Stored: c.Stored, Page: 50,
			Out: out, Log: t.Errs, Child: t.Child, Result: f,
		})
	})
}
