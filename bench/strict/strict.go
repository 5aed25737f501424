// Package strict reads YAML that people write: what is not understood is an
// error that says where it stands and what is accepted there.
package strict

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

// Longest is how many bytes a document may have.
const Longest = 1 << 20

// Read reads the one document of b into v, a pointer to a struct whose fields
// have yaml tags. Keys that v has no field for, keys that come twice, and
// anchors are errors. It never panics.
func Read(b []byte, v any) error {
	if len(b) > Longest {
		return fmt.Errorf("%d bytes: want %d at most", len(b), Longest)
	}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return errors.New("there is nothing in it")
	} else if err != nil {
		return err
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return errors.New("want one document")
	}
	if len(doc.Content) != 1 {
		return errors.New("there is nothing in it")
	}
	if err := check(doc.Content[0], reflect.TypeOf(v), "the file"); err != nil {
		return err
	}
	return doc.Decode(v)
}

// check holds a node against the type that it is to become. where names it.
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

// flat refuses anchors in what reads itself.
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
			return fmt.Errorf("line %d: %s: %q stands there twice", key.Line, where, key.Value)
		}
		seen = append(seen, key.Value)
		if err := check(n.Content[i+1], f, key.Value); err != nil {
			return err
		}
	}
	return nil
}

// fields tells the keys of a struct; those of an inlined one are its own.
func fields(t reflect.Type, tell func(name string, f reflect.Type)) {
	for f := range t.Fields() {
		switch name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ","); {
		case rest == "inline":
			fields(f.Type, tell)
		case name != "" && name != "-":
			tell(name, f.Type)
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
