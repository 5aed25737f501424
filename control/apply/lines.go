package apply

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/db"
)

// A DiffLine is a line of a text that was compared with another.
type DiffLine struct {
	Mark string // "+" added, "-" removed, " " in both; "…" lines in both were left out
	Text string
}

const (
	diffContext  = 3       // lines around a change
	maxDiffCells = 400_000 // product of the lines that are compared; above, all lines count as changed
)

// DiffLines compares two texts by lines. It keeps three lines around each change.
func DiffLines(before, after string) []DiffLine {
	a, b := splitLines(before), splitLines(after)
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var all []DiffLine
	add := func(mark string, lines []string) {
		for _, l := range lines {
			all = append(all, DiffLine{mark, l})
		}
	}
	add(" ", a[:head])
	all = append(all, diffMiddle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	add(" ", a[len(a)-tail:])
	return shorten(all)
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// diffMiddle compares lines by their longest common subsequence.
func diffMiddle(a, b []string) (all []DiffLine) {
	if len(a)*len(b) > maxDiffCells {
		for _, l := range a {
			all = append(all, DiffLine{"-", l})
		}
		for _, l := range b {
			all = append(all, DiffLine{"+", l})
		}
		return all
	}
	common, width := commonLengths(a, b), len(b)+1
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			all = append(all, DiffLine{" ", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*width+j] >= common[i*width+j+1]:
			all = append(all, DiffLine{"-", a[i]})
			i++
		default:
			all = append(all, DiffLine{"+", b[j]})
			j++
		}
	}
	return all
}

// commonLengths returns at i*(len(b)+1)+j the length of the longest common subsequence of a[i:] and b[j:].
func commonLengths(a, b []string) []int32 {
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width)
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	return common
}

// shorten leaves out lines that are in both texts and far from a change.
func shorten(all []DiffLine) (short []DiffLine) {
	for i, l := range all {
		near := all[max(0, i-diffContext):min(len(all), i+diffContext+1)]
		switch {
		case slices.ContainsFunc(near, func(x DiffLine) bool { return x.Mark != " " }):
			short = append(short, l)
		case len(short) == 0 || short[len(short)-1].Mark != "…":
			short = append(short, DiffLine{Mark: "…"})
		}
	}
	return short
}

// IsText reports whether the change is one of a text with several lines, which Lines shows better than String.
func (c Change) IsText() bool {
	was, isText := c.Before.(string)
	is, stays := c.After.(string)
	return (isText || c.Before == nil) && (stays || c.After == nil) && strings.Contains(was+is, "\n")
}

// Lines compares the values of a text.
func (c Change) Lines() []DiffLine {
	was, _ := c.Before.(string)
	is, _ := c.After.(string)
	return DiffLines(was, is)
}

// DiffAgent compares two versions of an agent; 0 is its draft, and -1 an agent without settings.
func DiffAgent(ctx context.Context, q db.Querier, a agents.Agent, from, to int) ([]Change, error) {
	read := func(version int) (any, error) {
		of := agents.Agent{Name: a.Name, Draft: a.Draft}
		if version < 0 {
			return nil, nil //nolint:nilnil // no settings
		}
		if version > 0 {
			var err error
			if of.Draft, err = agents.ReadVersion(ctx, q, a.ID, version); err != nil {
				return nil, err
			}
		}
		return WithSecrets(of), nil
	}
	was, err := read(from)
	if err != nil {
		return nil, err
	}
	is, err := read(to)
	if err != nil {
		return nil, err
	}
	return Diff(was, is), nil
}
