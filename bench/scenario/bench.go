package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/pipeline/fake"
)

// Bench runs all scenarios, and again with what the options switch off, and
// writes the table to out. Where they are named, file gets everything as JSON
// and dir the recordings of the ten worst turns.
func Bench(ctx context.Context, out io.Writer, o Options, file, dir string) error {
	if _, err := gateway.Without(o.Without); err != nil {
		return err
	}
	if o.Calls < 1 || o.Pauses < 1 {
		return fmt.Errorf("%d calls, %d pauses: want 1 or more of each", o.Calls, o.Pauses)
	}
	s := fake.Typical()
	fmt.Fprintf(out, "turns: SIP and RTP, PCMU; fake providers in another process: partial %v, final %v, first token %v, first byte %v; %d calls at a time, seed %d\n",
		s.PartialLag, s.FinalLag, s.FirstToken, s.FirstByte, o.Calls, o.Seed)
	less := slices.Clone(o.Without)
	o.Without = nil
	first, err := Run(ctx, o)
	if err != nil {
		return err
	}
	runs := []*Report{first}
	if len(less) > 0 {
		o.Without = less
		second, err := Run(ctx, o)
		if err != nil {
			return fmt.Errorf("without %s: %w", strings.Join(less, ", "), err)
		}
		runs = append(runs, second)
	}
	if file != "" {
		b, err := json.MarshalIndent(runs, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			return err
		}
	}
	if dir != "" {
		if err := first.Record(dir, 10); err != nil {
			return err
		}
	}
	return Table(out, runs...)
}
