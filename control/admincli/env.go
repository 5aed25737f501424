// Package admincli implements the administration commands, which use the database directly
// and need no running server. The fields of a command are its arguments.
package admincli

import (
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/retention"
)

// Env holds the dependencies of commands.
type Env struct {
	Pool *pgxpool.Pool
	// AllowInsecure permits webhooks to http and private addresses.
	AllowInsecure bool
	// Providers checks the providers of agents; nil skips the checks.
	Providers agents.ProviderChecker
	// Bucket stores the recordings.
	Bucket retention.Bucket
	// In is the source of passwords.
	In io.Reader
	// Out receives the output, and Errs the warnings.
	Out, Errs io.Writer
}

// table returns a writer for aligned columns.
func (d *Env) table() *tabwriter.Writer { return tabwriter.NewWriter(d.Out, 0, 4, 2, ' ', 0) }

// formatTime formats a time to the minute, in UTC.
func formatTime(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04")
}
