// Package desk is what operators' commands do with the database, whether a server
// runs or not. The fields of a command are its arguments.
package desk

import (
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/retention"
)

// A Desk is what commands work with.
type Desk struct {
	Pool *pgxpool.Pool
	// AllowInsecure lets webhooks go to http and private addresses.
	AllowInsecure bool
	// Bucket keeps the recordings.
	Bucket retention.Bucket
	// In is what a command reads passwords from.
	In io.Reader
	// Out takes what a command prints.
	Out io.Writer
}

// table prints columns that stand under each other.
func (d *Desk) table() *tabwriter.Writer { return tabwriter.NewWriter(d.Out, 0, 4, 2, ' ', 0) }

// day is a time to the minute, in UTC.
func day(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04")
}
