package ending

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/parley-voice/parley/pipeline/eot/ending"
)

// A Job is what is fitted and measured.
type Job struct {
	Transcripts []string // files of utterances, one a line; one that is named twice counts twice
	Every       int      // one line in so many is measured, and not fitted to
	Fit         string   // where the model is written that is fitted to the others; else that of the house is measured
	Classes     string   // a file of classes of words, for Fit
	Grammar     string   // a file of rules that make more lines, for Fit
}

// Run fits, if it is asked to, and writes the tables to out and the progress to
// errs.
func (j Job) Run(out, errs io.Writer) error {
	if j.Every < 1 {
		return fmt.Errorf("one line in %d is measured: want 1 or more", j.Every)
	}
	var fitted []Line
	held := make([][]Line, len(j.Transcripts))
	for i, name := range j.Transcripts {
		lines, err := load(name, Lines)
		if err != nil {
			return err
		}
		for n, l := range lines {
			if n%j.Every == j.Every/2 {
				held[i] = append(held[i], l)
			} else {
				fitted = append(fitted, l)
			}
		}
	}
	m := ending.English()
	if j.Fit != "" {
		var err error
		if m, err = j.fit(fitted, errs); err != nil {
			return err
		}
	}
	var names []string
	var ratings []*Rating
	for i, lines := range held {
		names, ratings = append(names, filepath.Base(j.Transcripts[i])), append(ratings, Rate(m, lines))
	}
	return Tables(out, names, ratings)
}

// fit fits a model and writes it.
func (j Job) fit(lines []Line, errs io.Writer) (m ending.Model, err error) {
	o := Defaults()
	o.Progress = func(round int, loss float64) {
		fmt.Fprintf(errs, "round %d of %d: loss %.4f\n", round+1, o.Rounds, loss)
	}
	if j.Classes != "" {
		if o.Lexicon, err = load(j.Classes, ReadLexicon); err != nil {
			return m, err
		}
	}
	if j.Grammar != "" {
		more, err := j.say()
		if err != nil {
			return m, err
		}
		lines = slices.Concat(lines, more)
	}
	packed := Fit(lines, o).Pack()
	if err := os.WriteFile(j.Fit, packed, 0o644); err != nil { //nolint:gosec // no secret
		return m, err
	}
	return ending.Read(string(packed))
}

// say makes lines by the grammar, of its words and those of the classes.
func (j Job) say() ([]Line, error) {
	members := map[string][]string{}
	if j.Classes != "" {
		var err error
		if members, err = load(j.Classes, ReadMembers); err != nil {
			return nil, err
		}
	}
	g, err := load(j.Grammar, func(r io.Reader) (Grammar, error) { return ReadGrammar(r, members) })
	if err != nil {
		return nil, err
	}
	return g.Say(made, rand.New(rand.NewPCG(5, 6))), nil //nolint:gosec // repeatable on purpose
}

// made is how many lines are made by a grammar.
const made = 60000

// load reads a file.
func load[T any](name string, read func(io.Reader) (T, error)) (x T, err error) {
	f, err := os.Open(name) //nolint:gosec // the operator's
	if err != nil {
		return x, err
	}
	defer f.Close()
	if x, err = read(f); err != nil {
		return x, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
}
