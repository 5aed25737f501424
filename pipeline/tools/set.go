// Package tools implements the tools of an agent: end or transfer the call, press keys, leave a
// voicemail, opt out, and call HTTP servers.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/jsonschema"
)

const (
	maxParallel = 4        // most tool calls of one reply that run at once
	maxResult   = 16 << 10 // most bytes of a result for the model
	cutMark     = " [cut: the rest is too long]"
)

// A Set holds the tools of a call. It is safe for concurrent use.
type Set struct{ tools []tool }

type tool struct {
	pipeline.Function
	spec   pipeline.Tool
	schema *jsonschema.Schema
}

// NewSet returns the set of the functions. It fails if a name or a schema is invalid or a name is not unique.
func NewSet(functions []pipeline.Function) (*Set, error) {
	s := &Set{}
	for _, f := range functions {
		spec := f.Spec()
		if !namePattern.MatchString(spec.Name) {
			return nil, fmt.Errorf("tool %q: a name must be 1 to 64 letters, digits, - or _", spec.Name)
		}
		if _, twice := s.find(spec.Name); twice {
			return nil, fmt.Errorf("tool %q is defined twice", spec.Name)
		}
		schema, err := jsonschema.Parse(spec.Parameters)
		if err != nil {
			return nil, fmt.Errorf("tool %q: parameters: %w", spec.Name, err)
		}
		s.tools = append(s.tools, tool{f, spec, schema})
	}
	return s, nil
}

// Add returns all with f appended. It returns all unchanged if a function has the name of f.
func Add(all []pipeline.Function, f pipeline.Function) []pipeline.Function {
	for _, x := range all {
		if x.Spec().Name == f.Spec().Name {
			return all
		}
	}
	return append(slices.Clip(all), f)
}

func (s *Set) find(name string) (tool, bool) {
	for _, t := range s.tools {
		if t.spec.Name == name {
			return t, true
		}
	}
	return tool{}, false
}

// Specs returns the tool descriptions for the model.
func (s *Set) Specs() []pipeline.Tool {
	var specs []pipeline.Tool
	for _, t := range s.tools {
		specs = append(specs, t.spec)
	}
	return specs
}

// Filler returns the filler of the first call whose function has one. It returns "" if none has.
func (s *Set) Filler(calls []pipeline.ToolCall) string {
	for _, c := range calls {
		if t, ok := s.find(c.Name); ok && t.Filler() != "" {
			return t.Filler()
		}
	}
	return ""
}

// A Result is the result of a tool call.
type Result struct {
	Call pipeline.ToolCall
	pipeline.ToolResult
	Failed bool
	Took   time.Duration
}

// Run runs calls, up to maxParallel at once. It returns the results in the order of the calls. An error
// becomes a result, so that the model can react to it.
func (s *Set) Run(ctx context.Context, calls []pipeline.ToolCall) []Result {
	all := make([]Result, len(calls))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, c := range calls {
		wg.Go(func() {
			slots <- struct{}{} // each function has a time limit, so a slot becomes free
			defer func() { <-slots }()
			all[i] = s.runOne(ctx, c)
		})
	}
	wg.Wait()
	return all
}

func (s *Set) runOne(ctx context.Context, c pipeline.ToolCall) (r Result) {
	began := time.Now()
	done, err := s.try(ctx, c)
	r = Result{Call: c, ToolResult: done, Took: time.Since(began)}
	if err != nil && errors.Is(context.Cause(ctx), errAbandoned) {
		err = errAbandoned
	}
	if err != nil {
		r.ToolResult, r.Failed = pipeline.ToolResult{Text: "error: " + err.Error()}, true
	}
	r.Text = truncate(pipeline.Clean(r.Text))
	return r
}

// try runs one call. A panic of a function is returned as an error.
func (s *Set) try(ctx context.Context, c pipeline.ToolCall) (done pipeline.ToolResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool %s failed", c.Name)
		}
	}()
	t, ok := s.find(c.Name)
	if !ok {
		return pipeline.ToolResult{}, fmt.Errorf("unknown tool %q; available: %s", c.Name, strings.Join(s.names(), ", "))
	}
	arguments := c.Arguments
	if len(strings.TrimSpace(string(arguments))) == 0 {
		arguments = json.RawMessage("{}")
	}
	if err := t.schema.Check(arguments); err != nil {
		return pipeline.ToolResult{}, fmt.Errorf("arguments: %w", err)
	}
	if ctx.Err() != nil {
		return pipeline.ToolResult{}, ctx.Err()
	}
	return t.Run(ctx, arguments)
}

func (s *Set) names() []string {
	var names []string
	for _, t := range s.tools {
		names = append(names, t.spec.Name)
	}
	return names
}

// truncate cuts text to maxResult bytes. It marks a cut with cutMark.
func truncate(text string) string {
	if len(text) <= maxResult {
		return text
	}
	n := maxResult - len(cutMark)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + cutMark
}
