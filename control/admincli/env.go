// Package admincli implements the administration commands. They use the database directly and need no running server.
// The fields of a command's type are its arguments.
package admincli

import (
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/media"
)

// Env holds the dependencies of the commands.
type Env struct {
	Pool *pgxpool.Pool
	// AllowInsecure permits webhooks with plain http and with private addresses.
	AllowInsecure bool
	// Providers checks the providers of agents; nil skips the checks.
	Providers agents.ProviderChecker
	// NumberZone returns the name of the time zone of a number, or "" if it is unknown; nil knows no number.
	NumberZone func(digits string) string
	// Bucket holds the recordings.
	Bucket recording.Bucket
	// SealKeys are the keys of PARLEY_SEAL_KEY; may be empty.
	SealKeys media.Secret
	// In is the input from which passwords are read.
	In io.Reader
	// Out receives the output, and Errs the warnings.
	Out, Errs io.Writer
}

func (d *Env) table() *tabwriter.Writer { return tabwriter.NewWriter(d.Out, 0, 4, 2, ' ', 0) }

// formatTime formats t to the minute, in UTC, with the name of the zone. A nil t gives a dash.
func formatTime(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
