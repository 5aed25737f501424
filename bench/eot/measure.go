package eot

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// A Rating holds the log odds of an end of turn for every place, by kind of place.
type Rating [End + 1][]float64

// Rate runs the model on every place of the lines.
func Rate(m model.Model, lines []Line) *Rating {
	var r Rating
	for _, l := range lines {
		for i, k := range l.Kinds {
			r[k] = append(r[k], m.End(l.Words[:i+1]))
		}
	}
	return &r
}

// At returns the threshold that the given share of Inside places reaches, in log odds; 0 if there are none.
func (r *Rating) At(share float64) float64 {
	all := slices.Sorted(slices.Values(r[Inside]))
	if len(all) == 0 {
		return 0
	}
	return all[min(len(all)-1, int((1-share)*float64(len(all))))]
}

// Above returns the share of places of a kind that reach the threshold odds.
func (r *Rating) Above(k Kind, odds float64) float64 {
	n := 0
	for _, v := range r[k] {
		if v >= odds {
			n++
		}
	}
	return float64(n) / float64(max(1, len(r[k])))
}

// Tables writes one line per rating. It shows the share of ends of turn that are found if 2, 5
// and 10 % of the Inside places are mistaken for ends.
func Tables(out io.Writer, names []string, ratings []*Rating) error {
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "transcripts\tinside\tends\t"+
		"2% mistaken: odds\tends\tcontinued\t5% mistaken: odds\tends\tcontinued\t10% mistaken: odds\tends\tcontinued\t")
	for i, r := range ratings {
		fmt.Fprintf(t, "%s\t%d\t%d\t", names[i], len(r[Inside]), len(r[End]))
		for _, share := range []float64{0.02, 0.05, 0.1} {
			odds := r.At(share)
			fmt.Fprintf(t, "%.2f\t%.1f%%\t%.1f%%\t", odds, 100*r.Above(End, odds), 100*r.Above(Going, odds))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
