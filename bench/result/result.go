// Package result is what a bench leaves behind: one format of file for all of
// them, with what was measured, how, on what machine, and whether it counts.
package result

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/parley-voice/parley/bench/machine"
	"github.com/parley-voice/parley/bench/stat"
)

// Format is that of files written today.
const Format = 1

// A File is what one run of a bench showed.
type File struct {
	Format  int             `json:"format"`
	Command string          `json:"command"` // such as "turns"
	Options json.RawMessage `json:"options,omitempty"`
	Version string          `json:"version"`
	Commit  string          `json:"commit,omitempty"` // "-dirty" where more than that was built
	Began   time.Time       `json:"began"`
	Seconds float64         `json:"seconds"` // that it took
	Machine machine.Machine `json:"machine"`
	Noise   Noise           `json:"noise"`
	// Generator is how late whoever made the load was itself.
	Generator *Generator `json:"generator,omitempty"`
	// Refused says why the figures do not count; empty where they do.
	Refused []string `json:"refused,omitempty"`
	// Limit is what a bench of load found to be in the way of more.
	Limit   string   `json:"limit,omitempty"`
	Metrics []Metric `json:"metrics"`
	Turns   []Turn   `json:"turns,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// Noise is what was heard of the machine.
type Noise struct {
	Before machine.Noise `json:"before"`
	During machine.Noise `json:"during"`
}

// A Generator is the process that makes the load.
type Generator struct {
	Of    string       `json:"of"`      // what of it was late
	Late  stat.Summary `json:"late_ms"` // by how much
	Bound float64      `json:"p99_at_most_ms"`
}

// A Turn is one exchange of a call, as it was heard.
type Turn struct {
	Call     string             `json:"call"`
	Number   int                `json:"number"`
	Scenario string             `json:"scenario,omitempty"`
	Calls    int                `json:"calls,omitempty"` // that were on at a time
	Text     string             `json:"text,omitempty"`  // what the caller said
	Figures  map[string]float64 `json:"figures"`
	Heard    []string           `json:"heard,omitempty"` // words
	// Marks are what was wrong with it.
	Marks []string `json:"marks,omitempty"`
	// Phases are what the server says that the time went for, in order.
	Phases []Phase `json:"phases,omitempty"`
	// Sound is a WAV of the turn: the caller left, what it heard right.
	Sound []byte `json:"wav,omitempty"`
}

// A Phase is a part of a turn's time.
type Phase struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

// PhaseNames are the parts of a turn's time, as the server tells them with _ms
// behind, in order.
func PhaseNames() []string {
	return []string{"jitter", "vad", "asr", "classifier", "eou_wait", "llm", "tool", "tts", "out"}
}

// Phases are those that took any time.
func Phases(ms func(name string) float64) []Phase {
	var all []Phase
	for _, name := range PhaseNames() {
		if v := ms(name + "_ms"); v > 0 {
			all = append(all, Phase{Name: name, MS: v})
		}
	}
	return all
}

// Measure has do measure, listens to the machine meanwhile, and returns the file
// of it. Options are the command's own, without secrets.
func Measure(ctx context.Context, command, version string, options any, do func(*File) error) (*File, error) {
	raw, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	f := &File{
		Format: Format, Command: command, Options: raw, Version: version, Commit: Commit(version),
		Machine: machine.Describe(), Noise: Noise{Before: machine.Before(ctx)}, Metrics: []Metric{}, Began: time.Now().UTC(),
	}
	stop := machine.During(ctx)
	err = do(f)
	f.Noise.During = stop()
	f.Seconds = time.Since(f.Began).Seconds()
	return f, err
}

// SameOptions tells whether two runs had the same options, but for the name of
// their file.
func SameOptions(a, b json.RawMessage) bool {
	x, okX := canonical(a)
	y, okY := canonical(b)
	return okX && okY && x == y
}

func canonical(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 {
		return "", true
	}
	var options map[string]any
	if json.Unmarshal(raw, &options) != nil {
		return "", false
	}
	delete(options, "JSON")
	b, err := json.Marshal(options)
	return string(b), err == nil
}

// Commit is what this program was built of: its commit, or its version where that
// was not kept.
func Commit(version string) string { return cmp.Or(revision(), version) }

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, more := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			more = "-dirty"
		}
	}
	return revision + more
}

// Generated notes how late the generator was, in ms, and refuses the run where
// that is more than bound. Of several the latest one is kept.
func (f *File) Generated(of string, late []float64, bound float64) {
	g := &Generator{Of: of, Late: stat.Summarize(late), Bound: bound}
	p99 := g.Late.P99.Value
	if f.Generator == nil || p99 > f.Generator.Late.P99.Value {
		f.Generator = g
	}
	if p99 > bound {
		f.Refuse("the load generator was the bottleneck: its %s were %.1f ms late (p99), at most %.1f ms count", of, p99, bound)
	}
}

// Refuse says why the figures do not count.
func (f *File) Refuse(format string, args ...any) {
	f.Refused = append(f.Refused, fmt.Sprintf(format, args...))
}

// Note adds a remark.
func (f *File) Note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Err is why the figures do not count, nil where they do.
func (f *File) Err() error {
	if len(f.Refused) == 0 {
		return nil
	}
	return fmt.Errorf("refused: %s", f.Refused[0])
}

// Add adds a metric, with its verdict.
func (f *File) Add(m Metric) {
	m.Verdict = m.Judge()
	f.Metrics = append(f.Metrics, m)
}

// Find is the metric of a name at a load; 0 calls is the one of no load in
// particular.
func (f *File) Find(name string, calls int) (Metric, bool) {
	for _, m := range f.Metrics {
		if m.Name == name && m.Calls == calls {
			return m, true
		}
	}
	return Metric{}, false
}

// Write writes the file.
func (f *File) Write(name string) error {
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, append(b, '\n'), 0o600)
}

// largest is how many bytes a file may have.
const largest = 256 << 20

// Read reads a file that Write wrote.
func Read(name string) (*File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > largest {
		return nil, fmt.Errorf("%s: %d bytes are no result of a bench", name, info.Size())
	}
	b, err := os.ReadFile(name) //nolint:gosec // the user's own
	if err != nil {
		return nil, err
	}
	f, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// Parse reads what a file holds.
func Parse(b []byte) (*File, error) {
	var f File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("no result of a bench, as --json writes them: %w", err)
	}
	if f.Format != Format {
		return nil, fmt.Errorf("format %d: accepted is %d, of parley bench … --json", f.Format, Format)
	}
	return &f, nil
}
