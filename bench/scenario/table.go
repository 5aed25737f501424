package scenario

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/parley-voice/parley/media/record"
)

// Table writes what runs showed, side by side. The targets are for the first.
func Table(out io.Writer, runs ...*Report) error {
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "ms\tn\tp50\tp95\tp99\tmax\ttarget\t\t")
	for _, r := range runs[1:] {
		fmt.Fprintf(t, "without %s: n\tp50\tp95\t", strings.Join(r.Without, ", "))
	}
	fmt.Fprintln(t)
	for i, x := range runs[0].Times {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%s\t", x.What, x.N, x.P50, x.P95, x.P99, x.Max, x.Target, verdict(x.Target, x.N, x.Met))
		for _, r := range runs[1:] {
			o := r.Times[i]
			fmt.Fprintf(t, "%d\t%.0f\t%.0f\t", o.N, o.P50, o.P95)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	t = tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "how often\tof\ttimes\tshare\ttarget\t\t")
	for _, r := range runs[1:] {
		fmt.Fprintf(t, "without %s: of\ttimes\tshare\t", strings.Join(r.Without, ", "))
	}
	fmt.Fprintln(t)
	for i, x := range runs[0].Counts {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f %%\t%s\t%s\t", x.What, x.N, x.Times, 100*x.Share(), x.Target, verdict(x.Target, x.N, x.Met))
		for _, r := range runs[1:] {
			o := r.Counts[i]
			fmt.Fprintf(t, "%d\t%d\t%.1f %%\t", o.N, o.Times, 100*o.Share())
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func verdict(target string, n int, met bool) string {
	switch {
	case target == "" || n == 0:
		return ""
	case met:
		return "met"
	default:
		return "missed"
	}
}

// Record writes stereo recordings of the worst n turns to dir: the callee left,
// what it heard right, from a second before the turn to the end of its answer.
func (r *Report) Record(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for i, t := range r.worst(n) {
		left, right := r.calls[t.Call].between(t.from.Add(-time.Second), t.to.Add(200*time.Millisecond))
		name := fmt.Sprintf("%02d-%s-%d.wav", i+1, t.Call, t.Number)
		if err := record.Write(filepath.Join(dir, name), left, right, rate); err != nil {
			return err
		}
	}
	return nil
}

// between is what was said and heard from one time to another.
func (c *played) between(from, to time.Time) (said, heard []int16) {
	at := func(t time.Time) int { return int(t.Sub(from) * rate / time.Second) }
	said, heard = make([]int16, at(to)), make([]int16, at(to))
	put := func(to []int16, pcm []int16, at int) {
		pcm = pcm[min(len(pcm), max(0, -at)):]
		copy(to[min(len(to), max(0, at)):], pcm)
	}
	for _, s := range c.callee.Said {
		put(said, c.lines[s.Line].PCM, at(s.Spoken(0, rate)))
	}
	frame := rate / 50
	for i, t := range c.callee.Heard.Played() {
		put(heard, c.callee.Heard.PCM[i*frame:(i+1)*frame], at(t))
	}
	return said, heard
}
