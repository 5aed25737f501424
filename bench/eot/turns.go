package eot

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/parley-voice/parley/pipeline/eot"
	"github.com/parley-voice/parley/pipeline/eot/model"
)

// Dialogues configure training and measurement of the model of turns.
type Dialogues struct {
	Paths   []string // files or folders of dialogues
	Fit     string   // file for the trained model; "" measures the shipped model
	Speaker string   // measures only what this speaker says; "" measures everybody
}

// Run trains a model of turns if Fit is set. Otherwise it writes how well the shipped model finds ends of turns on each path.
func (j Dialogues) Run(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "dialogues\tboundaries\tends\tAUC with punctuation\tguess\twithout\tguess\t")
	var fitted []place
	for _, path := range j.Paths {
		all, err := readDialogues(path)
		if err != nil {
			return err
		}
		var places []place
		for _, d := range all {
			places = append(places, placesOf(d, j.Fit != "", j.Speaker)...)
		}
		if fitted = append(fitted, places...); j.Fit == "" {
			writeAreas(t, filepath.Base(path), places)
		}
	}
	if j.Fit == "" {
		return t.Flush()
	}
	return os.WriteFile(j.Fit, fitTurns(fitted), 0o644) //nolint:gosec // no secret
}

// writeAreas writes a row of AUCs: those of the model of turns and of the complete guess, with and without punctuation.
func writeAreas(t io.Writer, name string, places []place) {
	var scores [4][]float64
	ended := make([]bool, len(places))
	ends, m := 0, model.EnglishTurns()
	for i, p := range places {
		if ended[i] = p.end; p.end {
			ends++
		}
		bare := strings.Join(p.Words, " ")
		for k, score := range [...]float64{
			m.End(p.Clause), eot.Pause{Text: p.text, Asked: p.asked}.Guess().P,
			m.End(model.Clause{Words: p.Words, Asked: p.Asked}), eot.Pause{Text: bare, Asked: p.asked}.Guess().P,
		} {
			scores[k] = append(scores[k], score)
		}
	}
	fmt.Fprintf(t, "%s\t%d\t%d\t", name, len(places), ends)
	for _, s := range scores {
		fmt.Fprintf(t, "%.3f\t", area(s, ended))
	}
	fmt.Fprintln(t)
}

// area returns the probability that an end has a higher score than another place (AUC).
func area(scores []float64, ended []bool) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	ranks, ends := 0.0, 0.0
	for i, next := 0, 0; i < len(order); i = next {
		for next < len(order) && scores[order[next]] == scores[order[i]] {
			next++
		}
		for _, k := range order[i:next] {
			if ended[k] {
				ranks, ends = ranks+float64(i+next+1)/2, ends+1
			}
		}
	}
	return (ranks - ends*(ends+1)/2) / max(ends*(float64(len(scores))-ends), 1)
}

// fitTurns trains a logistic regression by stochastic gradient descent with one step size per weight (AdaGrad). It
// sees each place with and without punctuation.
func fitTurns(places []place) []byte {
	const (
		rounds  = 4
		rate    = 0.15
		decay   = 2e-5
		callers = 2 // weight of those who answer
	)
	w, squares := make([]float32, model.TurnWeights), make([]float32, model.TurnWeights)
	var shift, shiftSquares float32
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable on purpose
	var buf [32]uint32
	for r := range rounds {
		rnd.Shuffle(len(places), func(i, k int) { places[i], places[k] = places[k], places[i] })
		step := float32(rate * (1 - 0.9*float64(r)/rounds))
		for _, p := range places {
			for _, c := range [...]model.Clause{p.Clause, {Words: p.Words, Asked: p.Asked}} {
				used := c.Features(buf[:0])
				y := shift
				for _, f := range used {
					y += w[f]
				}
				d := float32(1 / (1 + math.Exp(-float64(y))))
				if p.end {
					d--
				}
				if p.answers {
					d *= callers
				}
				for _, f := range used {
					g := d + decay*w[f]
					squares[f] += g * g
					w[f] -= step * g / (float32(math.Sqrt(float64(squares[f]))) + 1)
				}
				shiftSquares += d * d
				shift -= step * d / (float32(math.Sqrt(float64(shiftSquares))) + 1)
			}
		}
	}
	return model.PackTurns(w, shift)
}
