// Package yamlstrict parses YAML that people write. Errors name the line, the problem and what is accepted.
package yamlstrict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Longest is the maximum size of a document in bytes.
const Longest = 1 << 20

// Read decodes b, a single document, into v, a pointer to a struct with yaml tags. Unknown keys,
// duplicate keys and anchors are errors. It never panics.
func Read(b []byte, v any) error {
	if len(b) > Longest {
		return fmt.Errorf("file has %d bytes: accepted are at most %d", len(b), Longest)
	}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return errors.New("empty file")
	} else if err != nil {
		return err
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return errors.New("want one YAML document")
	}
	if len(doc.Content) != 1 {
		return errors.New("empty file")
	}
	if err := check(doc.Content[0], reflect.TypeOf(v), "the file"); err != nil {
		return err
	}
	return doc.Decode(v)
}

// check validates a node against its target type t. where names the node in errors.
func check(n *yaml.Node, t reflect.Type, where string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fmt.Errorf("line %d: anchors are not accepted", n.Line)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()):
		return flat(n, where)
	case t.Kind() == reflect.Struct:
		return checkStruct(n, t, where)
	case t.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return fmt.Errorf("line %d: %s: want a list", n.Line, where)
		}
		for i, item := range n.Content {
			if err := check(item, t.Elem(), fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return err
			}
		}
		return nil
	default:
		return checkValue(n, t, where)
	}
}

// flat rejects anchors in a node whose type has its own decoder.
func flat(n *yaml.Node, where string) error {
	for _, c := range n.Content {
		if c.Kind == yaml.AliasNode || c.Anchor != "" {
			return fmt.Errorf("line %d: %s: anchors are not accepted", c.Line, where)
		}
	}
	return nil
}

func checkStruct(n *yaml.Node, t reflect.Type, where string) error {
	accepted := map[string]reflect.Type{}
	var names []string
	fields(t, func(name string, f reflect.Type) {
		accepted[name], names = f, append(names, name)
	})
	list := strings.Join(names, ", ")
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: %s: want keys and values; keys are %s", n.Line, where, list)
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		f, ok := accepted[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode:
			return fmt.Errorf("line %d: %s: unknown key %q: accepted are %s", key.Line, where, key.Value, list)
		case slices.Contains(seen, key.Value):
			return fmt.Errorf("line %d: %s: duplicate key %q", key.Line, where, key.Value)
		}
		seen = append(seen, key.Value)
		if err := check(n.Content[i+1], f, key.Value); err != nil {
			return err
		}
	}
	return nil
}

// fields calls visit for each key of a struct, including keys of inlined structs.
func fields(t reflect.Type, visit func(name string, f reflect.Type)) {
	for f := range t.Fields() {
		switch name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ","); {
		case rest == "inline":
			fields(f.Type, visit)
		case name != "" && name != "-":
			visit(name, f.Type)
		}
	}
}

func checkValue(n *yaml.Node, t reflect.Type, where string) error {
	if n.Kind == yaml.ScalarNode && n.Decode(reflect.New(t).Interface()) == nil {
		return nil
	}
	want := "a value"
	switch {
	case t == reflect.TypeFor[time.Duration]():
		want = `a time, such as "150ms" or "2s"`
	case t.Kind() == reflect.String:
		want = "a text"
	case t.Kind() == reflect.Bool:
		want = "true or false"
	case t.Kind() == reflect.Float64:
		want = "a number"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Uint64:
		want = "a whole number"
	}
	return fmt.Errorf("line %d: %s is %q: want %s", n.Line, where, n.Value, want)
}
