package command

import (
	"context"
	"time"

	"github.com/parley-voice/parley/bench/api"
)

// API measures the HTTP API.
type API struct {
	Database string        `help:"Postgres to use; it is filled with calls. Without it, one of its own." placeholder:"URL"`
	Length   time.Duration `help:"How long each is measured." default:"20s"`
	Stored   int           `help:"Calls that lists go over; 0 measures none." default:"1000000"`
}

// Run measures the API.
func (c API) Run(ctx context.Context, t *Terminal) error {
	return api.Run(ctx, api.Options{
		Database: c.Database, Subgroups: 20, Rate: 500, Clients: 16, Length: c.Length, Stored: c.Stored, Page: 50,
		Out: t.Out, Log: t.Errs, Child: t.Child,
	})
}
