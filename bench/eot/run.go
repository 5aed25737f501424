package eot

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/parley-voice/parley/pipeline/eot/model"
)

// A Job configures training and measurement.
type Job struct {
	Transcripts []string // files with one utterance per line; a file listed twice counts twice
	Every       int      // every n-th line is measured and not used for training
	Fit         string   // file for the trained model; "" measures the shipped model
	Classes     string   // file of word classes, used by Fit
	Grammar     string   // file of grammar rules, used by Fit
}

// Run trains a model if Fit is set. It writes the tables to out and the progress to errs.
func (j Job) Run(out, errs io.Writer) error {
	if j.Every < 1 {
		return fmt.Errorf("--every %d: must be at least 1", j.Every)
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
	m := model.English()
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

// fit trains a model and writes it to the file j.Fit.
func (j Job) fit(lines []Line, errs io.Writer) (m model.Model, err error) {
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
	return model.Read(string(packed))
}

// say generates lines from the grammar and the classes.
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
	return g.Say(grammarLines, rand.New(rand.NewPCG(5, 6))), nil //nolint:gosec // repeatable on purpose
}

// grammarLines is the number of lines generated from a grammar.
const grammarLines = 60000

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
