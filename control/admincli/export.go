package admincli

import (
	"context"
	"fmt"
	"io"

	"github.com/parley-voice/parley/control/apply"
)

// Export writes the operator's file.
type Export struct{}

// Run prints what parley apply has written to the database, without secrets.
func (Export) Run(ctx context.Context, d *Env) error {
	s, err := apply.Read(ctx, d.Pool)
	if err != nil {
		return err
	}
	return s.Write(d.Out)
}

// PrintChanges prints one change a line, and how many there are.
func PrintChanges(out io.Writer, all []apply.Change, asJSON bool) error {
	if asJSON {
		return WriteJSON(out, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "no changes")
		return err
	}
	var created, changed, removed int
	for _, c := range all {
		switch {
		case c.Before == nil:
			created++
		case c.After == nil:
			removed++
		default:
			changed++
		}
		if _, err := fmt.Fprintln(out, c); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d created, %d changed, %d removed\n", created, changed, removed)
	return err
}
