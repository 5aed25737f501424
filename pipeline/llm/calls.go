package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/parley-voice/parley/pipeline"
)

// Limits of the tool calls of one answer.
const (
	maxCalls     = 64
	maxArguments = 256 << 10 // most bytes of a call's arguments, and of the provider's data for it
)

// calls assembles the tool calls of an answer from their parts.
type calls struct {
	origin string // identifies the model that makes the calls; see endpoint.origin
	first  int    // number in the generated ID of the first call; used for calls without an ID
	all    []*call
}

type call struct {
	index     int // -1 if the server sends none
	id, name  string
	arguments []byte
	extra     any // provider data for pipeline.ToolCall.Extra; nil for none
}

// A piece is a part of a streamed tool call. Some servers omit the index or the ID.
type piece struct {
	index     *int
	id, name  string
	arguments []byte
	whole     bool // the arguments replace the earlier parts instead of continuing them
	extra     any
}

func (cs *calls) add(p piece) error {
	c := cs.find(p)
	if c == nil {
		if len(cs.all) == maxCalls {
			return fmt.Errorf("%w: more than %d tool calls", pipeline.ErrUnusable, maxCalls)
		}
		c = &call{index: -1}
		if p.index != nil {
			c.index = *p.index
		}
		cs.all = append(cs.all, c)
	}
	c.id, c.name = cmp.Or(c.id, p.id), cmp.Or(c.name, p.name)
	if p.whole && len(p.arguments) > 0 {
		c.arguments = nil
	}
	if c.arguments = append(c.arguments, p.arguments...); len(c.arguments) > maxArguments {
		return fmt.Errorf("%w: tool call %q: arguments of more than %d bytes", pipeline.ErrUnusable, pipeline.Clean(c.name), maxArguments)
	}
	if p.extra != nil {
		c.extra = p.extra
	}
	return nil
}

// find returns the call that a piece continues, or nil if it starts a new one.
func (cs *calls) find(p piece) *call {
	for _, c := range cs.all {
		sameIndex := p.index != nil && c.index == *p.index
		if p.id != "" && c.id == p.id || sameIndex && (p.id == "" || c.id == "") {
			return c
		}
	}
	if n := len(cs.all); n > 0 && p.index == nil && p.id == "" && p.name == "" {
		return cs.all[n-1]
	}
	return nil
}

// assemble returns the complete calls. Its errors wrap pipeline.ErrUnusable.
func (cs *calls) assemble() ([]pipeline.ToolCall, error) {
	var all []pipeline.ToolCall
	for i, c := range cs.all {
		args := cmp.Or(string(bytes.TrimSpace(c.arguments)), "{}")
		if c.name == "" {
			return nil, fmt.Errorf("%w: tool call without a name", pipeline.ErrUnusable)
		}
		if args[0] != '{' || !json.Valid([]byte(args)) {
			return nil, fmt.Errorf("%w: tool call %q: arguments must be a JSON object", pipeline.ErrUnusable, pipeline.Clean(c.name))
		}
		t := pipeline.ToolCall{
			ID: cmp.Or(c.id, fmt.Sprintf("call_%d", cs.first+i)), Name: c.name, Arguments: json.RawMessage(args),
		}
		if c.extra != nil {
			t.Extra = seal(cs.origin, c.extra)
		}
		all = append(all, t)
	}
	return all, nil
}
