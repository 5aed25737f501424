package scenario

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/pipeline/fake"
)

// Punctual is how late, in ms, the callees' clock may be at its 99th percentile:
// half a packet.
const Punctual = 10

// Bench runs all scenarios, and again with what the options switch off, and puts
// all that came of it into f. Where dir is named it gets the recordings of the
// ten worst turns.
func Bench(ctx context.Context, out io.Writer, o Options, f *result.File, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Calls < 1 || o.Pauses < 1 {
		return fmt.Errorf("%d calls, %d pauses: want 1 or more of each", o.Calls, o.Pauses)
	}
	s := fake.Typical()
	by := "SIP and RTP, PCMU"
	if o.peer() == scene.Web {
		by = "WebRTC, G.722, at a server with a database"
	}
	fmt.Fprintf(out, "turns: %s; fake providers in another process: partial %v, final %v, first token %v, first byte %v; %d calls at a time, seed %d\n",
		by, s.PartialLag, s.FinalLag, s.FirstToken, s.FirstByte, o.Calls, o.Seed)
	if o.warms() {
		fmt.Fprintln(out, "warm-up: one call before all others; nothing of it is counted")
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
	f.Generated("media clock's ticks", first.Late, Punctual)
	for what, lines := range map[string][]string{"heard, and said by nobody": first.Ghosts, "the same where the line echoes": first.Echoed, "came damaged": first.Damaged} {
		if len(lines) > 0 {
			f.Note("%s: %s", what, strings.Join(lines, " | "))
		}
	}
	if f.Turns, err = first.rows(); err != nil || dir == "" {
		return err
	}
	return first.Record(dir, 10)
}
