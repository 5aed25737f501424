// Package result defines the result file of all benchmarks: measurements, options, machine, and
// whether the run is valid.
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

// Format is the version of the file format.
const Format = 1

// A File is the result of one run.
type File struct {
	Format  int             `json:"format"`
	Command string          `json:"command"` // name of the command, such as "turns"
	Options json.RawMessage `json:"options,omitempty"`
	Version string          `json:"version"`
	Commit  string          `json:"commit,omitempty"` // commit of the binary; "-dirty" marks uncommitted changes
	Began   time.Time       `json:"began"`
	Seconds float64         `json:"seconds"` // duration of the run
	Machine machine.Machine `json:"machine"`
	Noise   Noise           `json:"noise"`
	// Generator is the lateness of the load generator.
	Generator *Generator `json:"generator,omitempty"`
	// Refused lists why the run is invalid; empty for a valid run.
	Refused []string `json:"refused,omitempty"`
	// Limit is the bottleneck that the load benchmark found.
	Limit   string   `json:"limit,omitempty"`
	Metrics []Metric `json:"metrics"`
	Turns   []Turn   `json:"turns,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// Noise is the noise of the machine before and during the run.
type Noise struct {
	Before machine.Noise `json:"before"`
	During machine.Noise `json:"during"`
}

// A Generator is the process that generates the load.
type Generator struct {
	Of    string       `json:"of"`      // name of the clock that was measured
	Late  stat.Summary `json:"late_ms"` // lateness of that clock
	Bound float64      `json:"p99_at_most_ms"`
}

// A Turn is one exchange of a call, as the caller heard it.
type Turn struct {
	Call     string             `json:"call"`
	Number   int                `json:"number"`
	Scenario string             `json:"scenario,omitempty"`
	Calls    int                `json:"calls,omitempty"` // concurrent calls
	Text     string             `json:"text,omitempty"`  // the caller's line
	Figures  map[string]float64 `json:"figures"`
	Heard    []string           `json:"heard,omitempty"` // words of the answer that were heard
	// Marks are the faults of the turn, such as "dead".
	Marks []string `json:"marks,omitempty"`
	// Phases are the parts of the server's turn_ms, in order.
	Phases []Phase `json:"phases,omitempty"`
	// Sound is a WAV of the turn: caller on the left, agent on the right.
	Sound []byte `json:"wav,omitempty"`
}

// A Phase is a part of a turn's response time.
type Phase struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

// PhaseNames returns the names of the phases of a turn, in order. The server reports them with the suffix _ms.
func PhaseNames() []string {
	return []string{"jitter", "vad", "asr", "classifier", "eou_wait", "llm", "tool", "tts", "out"}
}

// Phases returns the phases that took time. ms returns the duration of a phase by its name with the suffix _ms.
func Phases(ms func(name string) float64) []Phase {
	var all []Phase
	for _, name := range PhaseNames() {
		if v := ms(name + "_ms"); v > 0 {
			all = append(all, Phase{Name: name, MS: v})
		}
	}
	return all
}

// Measure runs do and returns its result file, with the noise of the machine before and during
// do. The file stores options, so they must hold no secrets.
func Measure(ctx context.Context, command, version string, options any, do func(*File) error) (*File, error) {
	raw, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	f := &File{
		Format: Format, Command: command, Options: raw, Version: version, Commit: Commit(version),
		Machine: machine.Describe(), Noise: Noise{Before: machine.MeasureNoise(ctx)}, Metrics: []Metric{}, Began: time.Now().UTC(),
	}
	stop := machine.MonitorNoise(ctx)
	err = do(f)
	f.Noise.During = stop()
	f.Seconds = time.Since(f.Began).Seconds()
	return f, err
}

// SameOptions reports whether two runs had the same options. It ignores the name of the result file.
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

// Commit returns the commit of this binary, or version if the build did not record the commit.
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

// CheckGenerator records the lateness of a clock of the load generator, in ms, and refuses the
// run if its p99 exceeds bound. The file keeps the clock with the largest p99.
func (f *File) CheckGenerator(of string, late []float64, bound float64) {
	g := &Generator{Of: of, Late: stat.Summarize(late), Bound: bound}
	p99 := g.Late.P99.Value
	if f.Generator == nil || p99 > f.Generator.Late.P99.Value {
		f.Generator = g
	}
	if p99 > bound {
		f.Refuse("the load generator was the bottleneck: %s was %.1f ms late (p99), limit %.1f ms", of, p99, bound)
	}
}

// Refuse marks the run as invalid.
func (f *File) Refuse(format string, args ...any) {
	f.Refused = append(f.Refused, fmt.Sprintf(format, args...))
}

// Note adds a remark to the file.
func (f *File) Note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Err returns the first reason why the run is invalid, or nil.
func (f *File) Err() error {
	if len(f.Refused) == 0 {
		return nil
	}
	return fmt.Errorf("refused: %s", f.Refused[0])
}

// Add appends a metric with its verdict.
func (f *File) Add(m Metric) {
	m.Verdict = m.Judge()
	f.Metrics = append(f.Metrics, m)
}

// Find returns the metric with this name and load. A metric without a load has 0 calls.
func (f *File) Find(name string, calls int) (Metric, bool) {
	for _, m := range f.Metrics {
		if m.Name == name && m.Calls == calls {
			return m, true
		}
	}
	return Metric{}, false
}

// Write stores the file under name.
func (f *File) Write(name string) error {
	b, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, append(b, '\n'), 0o600)
}

// maxFileSize is the limit of Read in bytes.
const maxFileSize = 256 << 20

// Read reads a file written by Write.
func Read(name string) (*File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("%s: %d bytes: too large for a bench result", name, info.Size())
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

// Parse parses the contents of a file.
func Parse(b []byte) (*File, error) {
	var f File
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("not a bench result (--json): %w", err)
	}
	if f.Format != Format {
		return nil, fmt.Errorf("result file has format %d: only format %d, which parley bench … --json writes, is accepted", f.Format, Format)
	}
	return &f, nil
}
