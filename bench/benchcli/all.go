package benchcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-voice/parley/bench/amd"
	"github.com/parley-voice/parley/bench/corpus"
	"github.com/parley-voice/parley/bench/result"
	"github.com/parley-voice/parley/bench/scenario"
)

// All runs all benchmarks.
type All struct {
	Small bool   `help:"Run a short version of each, to check that it works. Its figures are not meaningful."`
	Dir   string `help:"Folder for results. Results of this version found there are kept." default:"bin/bench" type:"path" placeholder:"DIR"`
	Into  string `help:"Update the table of performance targets in this Markdown file, between its two marker lines." type:"existingfile" placeholder:"FILE"`
}

// A part is one of the benchmarks that All runs.
type part struct {
	name    string
	options any // options without the name of the JSON file
	run     func(ctx context.Context, t *Terminal, file string) error
}

// parts returns the benchmarks that All runs, the short ones first.
func (c All) parts() []part {
	turns := Turns{Calls: 36, Pauses: 780, // gives more than 1,000 turns with an uninterrupted answer
		Seed: corpus.HeldOut}
	web := Turns{Peer: scenario.Web, Calls: 10, Pauses: 600, Seed: corpus.HeldOut, Only: []scenario.Name{scenario.Plain}}
	media := Media{Calls: []int{50, 100, 200}, Runs: 5, Length: 5 * time.Second}
	load := Load{
		Steps:  []int{1, 25, 50, 100, 200, 300, 500},
		Length: 20 * time.Second,
		Hold:   40 * time.Second,
		Ramp:   5 * time.Second,
		Settle: 5 * time.Second,
	}
	load.Profile = filepath.Join(c.Dir, "load.pprof")
	campaigns := Campaigns{Pace: 200, Campaigns: 1, Length: 5 * time.Minute}
	api, amd := API{Length: 20 * time.Second, Stored: 1_000_000}, Amd{Takes: 4, Seed: amd.HeldOut}
	if c.Small {
		turns.Calls, turns.Pauses = 12, 24
		web.Calls, web.Pauses = 2, 60
		media.Calls, media.Runs, media.Length = []int{50}, 1, 2*time.Second
		load.Steps, load.Length, load.Hold, load.Profile = []int{1, 10}, 5*time.Second, 20*time.Second, ""
		api.Length, api.Stored, amd.Takes = 3*time.Second, 10_000, 1
		campaigns.Length = 20 * time.Second
	}
	return []part{
		{"amd", amd, func(ctx context.Context, t *Terminal, file string) error { amd.JSON = file; return amd.Run(ctx, t) }},
		{"media", media, func(ctx context.Context, t *Terminal, file string) error { media.JSON = file; return media.Run(ctx, t) }},
		{"turns", turns, func(ctx context.Context, t *Terminal, file string) error { turns.JSON = file; return turns.Run(ctx, t) }},
		{"web", web, func(ctx context.Context, t *Terminal, file string) error { web.JSON = file; return web.Run(ctx, t) }},
		{"load", load, func(ctx context.Context, t *Terminal, file string) error { load.JSON = file; return load.Run(ctx, t) }},
		{"campaigns", campaigns, func(ctx context.Context, t *Terminal, file string) error {
			campaigns.JSON = file
			return campaigns.Run(ctx, t)
		}},
		{"api", api, func(ctx context.Context, t *Terminal, file string) error { api.JSON = file; return api.Run(ctx, t) }},
	}
}

// Run runs the parts that have no valid result yet and writes the report. If a part fails or its
// result is invalid, the others still run.
func (c All) Run(ctx context.Context, t *Terminal) error {
	if err := os.MkdirAll(c.Dir, 0o750); err != nil {
		return err
	}
	var files []string
	var all error
	for _, p := range c.parts() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		file := filepath.Join(c.Dir, p.name+".json")
		fmt.Fprintf(t.Out, "── %s\n", p.name)
		if p.done(file, result.Commit(t.Version)) {
			fmt.Fprintf(t.Out, "already measured: %s\n\n", file)
			files = append(files, file)
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := p.run(ctx, t, file); err != nil {
			all = errors.Join(all, fmt.Errorf("bench %s: %w", p.name, err))
			fmt.Fprintln(t.Errs, "bench", p.name+":", err)
		}
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		}
		fmt.Fprintln(t.Out)
	}
	if len(files) == 0 {
		return all
	}
	err := Report{Files: files, Out: filepath.Join(c.Dir, "report.html")}.Run(t)
	if err == nil && c.Into != "" {
		err = Docs{Files: files, Into: c.Into}.Run()
	}
	return errors.Join(all, err)
}

// done reports whether file holds a valid result of this part, from the same options and commit.
func (p part) done(file, commit string) bool {
	f, err := result.Read(file)
	if err != nil || f.Err() != nil || f.Commit != commit || commit == "dev" || strings.HasSuffix(commit, "-dirty") {
		return false
	}
	options, err := json.Marshal(p.options)
	return err == nil && result.SameOptions(f.Options, options)
}
