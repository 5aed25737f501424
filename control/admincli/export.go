package admincli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/control/apply"
)

// Export writes the operator's file.
type Export struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// ReadOnly holds the dependencies of commands that change nothing. They fail if there is no database.
type ReadOnly struct {
	Pool *pgxpool.Pool
	Out  io.Writer
}

// Run prints what parley apply has written to the database, without secrets.
func (c Export) Run(ctx context.Context, d *ReadOnly) error {
	s, err := apply.Read(ctx, d.Pool)
	if err != nil {
		return err
	}
	if !c.JSON {
		return s.Write(d.Out)
	}
	var text bytes.Buffer
	var v any
	if err = s.Write(&text); err != nil {
		return err
	}
	if err = yaml.Unmarshal(text.Bytes(), &v); err != nil {
		return err
	}
	return WriteJSON(d.Out, v)
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
		if err := printChange(out, c); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d created, %d changed, %d removed\n", created, changed, removed)
	return err
}

// printChange prints a change as one line, or a text with several lines by its lines.
func printChange(out io.Writer, c apply.Change) error {
	if !c.IsText() {
		_, err := fmt.Fprintln(out, c)
		return err
	}
	if _, err := fmt.Fprintf(out, "~ %s:\n", c.Path); err != nil {
		return err
	}
	for _, l := range c.Lines() {
		if _, err := fmt.Fprintln(out, strings.TrimRight("    "+l.Mark+" "+l.Text, " ")); err != nil {
			return err
		}
	}
	return nil
}
