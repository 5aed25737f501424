package admincli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"

	"github.com/parley-voice/parley/control/failover"
)

// Failover groups the commands for a database that was reset to an earlier state, by a failover or from a backup.
type Failover struct {
	Status  FailoverStatus  `cmd:"" help:"Show whether calls are dialed and which nodes have not reported their calls."`
	Release FailoverRelease `cmd:"" help:"Dial held calls without the missing nodes. Their numbers may be called twice."`
	Hold    FailoverHold    `cmd:"" help:"Hold queued calls and running campaigns, before servers start on a restored database."`
}

// FailoverStatus shows the state after a failover.
type FailoverStatus struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints whether the servers dial calls, and which calls they hold.
func (c FailoverStatus) Run(ctx context.Context, d *Env) error {
	h, err := failover.ReadHolds(ctx, d.Pool)
	if err != nil {
		return err
	}
	if c.JSON {
		return WriteJSON(d.Out, h)
	}
	switch {
	case !h.Open:
		_, err = fmt.Fprintf(
			d.Out, "paused: the database reverted to an earlier state at %s; waiting for %s\n",
			h.Since.UTC().Format("2006-01-02 15:04:05 UTC"), names(h.Expected),
		)
	case len(h.Missing) > 0 || h.Restored || h.ByOperator:
		_, err = fmt.Fprintf(
			d.Out, "held: %d calls and %d campaigns from before %s\n", h.Calls, h.Campaigns, h.Since.UTC().Format("2006-01-02 15:04:05 UTC"),
		)
		if err == nil {
			err = printReasons(d.Out, h)
		}
	default:
		_, err = fmt.Fprintln(d.Out, "open: calls are dialed")
	}
	if err == nil && h.Facts > 0 {
		_, err = fmt.Fprintf(d.Out, "%d calls were sent and their records lost: campaigns do not call those numbers for 24 h\n", h.Facts)
	}
	return err
}

// printReasons prints why calls are held.
func printReasons(out io.Writer, h failover.Holds) (err error) {
	if h.Restored {
		_, err = fmt.Fprintf(out, "  the database was restored to its state of %s: the calls since then may be unknown\n",
			h.Behind.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	if h.ByOperator && err == nil {
		_, err = fmt.Fprintln(out, "  an operator held them: parley failover hold")
	}
	if len(h.Missing) > 0 && err == nil {
		_, err = fmt.Fprintf(out, "  nodes that have not reported: %s\n", names(h.Missing))
	}
	return err
}

func names(all []string) string {
	if len(all) == 0 {
		return "no node"
	}
	return strings.Join(all, ", ")
}

// FailoverRelease releases held calls, so that the servers dial them.
type FailoverRelease struct {
	Yes bool `help:"Confirm that the missing nodes will not return, and that every number called in the period that the database lost is withdrawn."`
}

// Run releases the held calls.
func (c FailoverRelease) Run(ctx context.Context, d *Env) error {
	if !c.Yes {
		return errors.New(
			"numbers called by a missing node, or after a backup, may be called again: compare the carrier's records, " +
				"withdraw those numbers, then repeat with --yes",
		)
	}
	by := "?"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	released, err := failover.Release(ctx, d.Pool, by)
	if err != nil {
		return err
	}
	if !released {
		return errors.New("no calls are held")
	}
	_, err = fmt.Fprintln(d.Out, "released")
	return err
}

// FailoverHold holds calls and campaigns until FailoverRelease.
type FailoverHold struct{}

// Run holds the calls and campaigns.
func (FailoverHold) Run(ctx context.Context, d *Env) error {
	if err := failover.Hold(ctx, d.Pool); err != nil {
		return err
	}
	_, err := fmt.Fprintln(d.Out, "held: calls ordered and campaigns launched before now; parley failover release dials them")
	return err
}
