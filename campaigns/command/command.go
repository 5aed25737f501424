// Package command is what operators' commands do about campaigns: lists, rules of
// markets, and campaigns themselves. The fields of a command are its arguments.
package command

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/campaigns/lists"
)

// A Terminal is what commands write to.
type Terminal struct {
	Out, Errs io.Writer
	// Bar draws how much of a long work is done, in a unit.
	Bar func(unit string) func(done, all int)
}

// A Desk is what commands about the database work with, whether a server runs or
// not.
type Desk struct {
	Terminal

	Pool  *pgxpool.Pool
	Lists *lists.Shelf
	By    string // who runs the command, for the record
}

// table prints columns that stand under each other.
func (t *Terminal) table() *tabwriter.Writer { return tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0) }

// day is a time to the day, in UTC.
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// many is a number of things, in words.
func many(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
