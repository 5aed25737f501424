// Package tools has what an agent may do beside talking: end the call, hand it
// over, press keys, leave a message, and ask servers over HTTP.
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
	atOnce        = 4        // calls of one answer that run side by side
	longestResult = 16 << 10 // bytes that the model is told of a result
	cutMark       = " [cut: the rest is too long]"
)

// A Set is the tools of a call. It is safe for concurrent use.
type Set struct{ tools []tool }

type tool struct {
	pipeline.Function
	spec   pipeline.Tool
	schema *jsonschema.Schema
}

// NewSet checks what the functions say of themselves.
func NewSet(functions []pipeline.Function) (*Set, error) {
	s := &Set{}
	for _, f := range functions {
		spec := f.Spec()
		if !named.MatchString(spec.Name) {
			return nil, fmt.Errorf("tool %q: a name is 1 to 64 letters, digits, - and _", spec.Name)
		}
		if _, twice := s.find(spec.Name); twice {
			return nil, fmt.Errorf("tool %q: there are two", spec.Name)
		}
		schema, err := jsonschema.Parse(spec.Parameters)
		if err != nil {
			return nil, fmt.Errorf("tool %q: parameters: %w", spec.Name, err)
		}
		s.tools = append(s.tools, tool{f, spec, schema})
	}
	return s, nil
}

// Add adds a tool, unless there is one of its name.
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

// Specs are what a model is told of the tools.
func (s *Set) Specs() []pipeline.Tool {
	var specs []pipeline.Tool
	for _, t := range s.tools {
		specs = append(specs, t.spec)
	}
	return specs
}

// Filler is what is said while calls take their time; empty for the usual line.
func (s *Set) Filler(calls []pipeline.ToolCall) string {
	for _, c := range calls {
		if t, ok := s.find(c.Name); ok && t.Filler() != "" {
			return t.Filler()
		}
	}
	return ""
}

// A Ran is a call that was made, and what came of it.
type Ran struct {
	Call pipeline.ToolCall
	pipeline.Done
	Failed bool
	Took   time.Duration
}

// Run makes calls, a few side by side, and returns when all are done, in their
// order. What goes wrong is told in the result, which a model can act on.
func (s *Set) Run(ctx context.Context, calls []pipeline.ToolCall) []Ran {
	all := make([]Ran, len(calls))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, c := range calls {
		wg.Go(func() {
			slots <- struct{}{} // given back within a function's own time
			defer func() { <-slots }()
			all[i] = s.one(ctx, c)
		})
	}
	wg.Wait()
	return all
}

func (s *Set) one(ctx context.Context, c pipeline.ToolCall) (r Ran) {
	began := time.Now()
	done, err := s.try(ctx, c)
	r = Ran{Call: c, Done: done, Took: time.Since(began)}
	if err != nil && errors.Is(context.Cause(ctx), errTooLong) {
		err = errTooLong
	}
	if err != nil {
		r.Done, r.Failed = pipeline.Done{Text: "error: " + err.Error()}, true
	}
	r.Text = cut(pipeline.Clean(r.Text))
	return r
}

// try makes one call. A function that panics must not take the call with it.
func (s *Set) try(ctx context.Context, c pipeline.ToolCall) (done pipeline.Done, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the tool %s broke", c.Name)
		}
	}()
	t, ok := s.find(c.Name)
	if !ok {
		return pipeline.Done{}, fmt.Errorf("there is no tool %q; there are: %s", c.Name, strings.Join(s.names(), ", "))
	}
	arguments := c.Arguments
	if len(strings.TrimSpace(string(arguments))) == 0 {
		arguments = json.RawMessage("{}")
	}
	if err := t.schema.Check(arguments); err != nil {
		return pipeline.Done{}, fmt.Errorf("arguments: %w", err)
	}
	if ctx.Err() != nil {
		return pipeline.Done{}, ctx.Err()
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

// cut bounds what a model is told, and says so.
func cut(text string) string {
	if len(text) <= longestResult {
		return text
	}
	n := longestResult - len(cutMark)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + cutMark
}
