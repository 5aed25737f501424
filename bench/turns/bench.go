package turns

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

// MaxLateness is the limit in ms, at p99, for the lateness of the callees' clock: half a packet.
const MaxLateness = 10

// Bench runs the standard scenarios and adds the metrics to f. It then repeats them with the
// parts in o.Without switched off. It writes recordings of the ten worst turns to dir unless dir
// is empty.
func Bench(ctx context.Context, out io.Writer, o Options, f *result.File, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Calls < 1 || o.Pauses < 1 {
		return fmt.Errorf("%d calls, %d pauses: must be at least 1", o.Calls, o.Pauses)
	}
	s := fakeprovider.Typical()
	by := "SIP and RTP, PCMU"
	if o.peer() == scenario.Web {
		by = "WebRTC, G.722, full server with a database"
	}
	fmt.Fprintf(out, "turns: %s; fake providers: partial %v, final %v, first token %v, first byte %v; %d concurrent calls, seed %d\n",
		by, s.PartialLag, s.FinalLag, s.FirstToken, s.FirstByte, o.Calls, o.Seed)
	if o.warms() {
		fmt.Fprintln(out, "one warm-up call, not counted")
	}
	less := slices.Clone(o.Without)
	o.Without = nil
	first, err := Run(ctx, o)
	if err != nil {
		return err
	}
	for _, m := range first.Metrics {
		f.Add(m)
	}
	if len(less) > 0 {
		o.Without = less
		second, failed := Run(ctx, o)
		if failed != nil {
			return fmt.Errorf("without %s: %w", strings.Join(less, ", "), failed)
		}
		for _, m := range second.Metrics {
			m.Name, m.What, m.Bounds = "without_"+strings.Join(less, "_")+"/"+m.Name, "without "+strings.Join(less, ", ")+": "+m.What, nil
			f.Add(m)
		}
	}
	f.CheckGenerator("media clock", first.Late, MaxLateness)
	for what, lines := range map[string][]string{
		"unspoken words recognized":                          first.Unspoken,
		"unspoken words recognized, caller's line with echo": first.UnspokenEchoed, "damaged": first.Damaged,
	} {
		if len(lines) > 0 {
			f.Note("%s: %s", what, strings.Join(lines, " | "))
		}
	}
	if f.Turns, err = first.rows(); err != nil || dir == "" {
		return err
	}
	return first.Record(dir, 10)
}
