// Package campaigncli implements the CLI commands for do-not-call lists, market rules and campaigns. The fields of a
// command struct are the arguments and flags of the command.
package campaigncli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns/dnc"
)

// A Terminal is the output of commands.
type Terminal struct {
	Out, Errs io.Writer
	// Bar returns a function that draws a progress bar; unit names what is counted.
	Bar func(unit string) func(done, all int)
}

// An Env is the environment of commands that use the database, with or without a
// running server.
type Env struct {
	Terminal

	Pool  *pgxpool.Pool
	Lists *dnc.Catalog
	By    string // operator who runs the command; records store the name
}

func (t *Terminal) table() *tabwriter.Writer { return tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0) }

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func countNoun(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
