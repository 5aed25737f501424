package apply

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/control"
)

// Parse parses an operator's file. An error contains the path of the invalid key. An error about an unknown key also
// lists the known keys.
func Parse(r io.Reader) (Spec, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(r)
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return Spec{}, errors.New("the file is empty")
		}
		return Spec{}, fmt.Errorf("the file is not valid YAML: %w", err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return Spec{}, errors.New("the file contains more than one document")
	}
	var s Spec
	if err := walk(doc.Content[0], reflect.TypeOf(s), ""); err != nil {
		return Spec{}, err
	}
	if err := doc.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("the file: %w", err)
	}
	if err := s.check(); err != nil {
		return s, err
	}
	return s, s.fillCarriers()
}

// walk checks that a YAML node fits the Go type t.
func walk(n *yaml.Node, t reflect.Type, path string) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.Kind() == reflect.Pointer {
		if n.Tag == "!!null" {
			return nil
		}
		t = t.Elem()
	}
	if t == reflect.TypeFor[RawValue]() || t.Kind() == reflect.Interface {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return walkMap(n, t, path)
	case reflect.Map:
		return walkFree(n, t, path)
	case reflect.Slice:
		return walkList(n, t, path)
	default:
		if n.Kind != yaml.ScalarNode || n.Decode(reflect.New(t).Interface()) != nil {
			return errAt(n, path, "expected %s", kindName(t))
		}
		return nil
	}
}

func walkList(n *yaml.Node, t reflect.Type, path string) error {
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return errAt(n, path, "expected a list")
	}
	for i, item := range n.Content {
		if err := walk(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

func walkMap(n *yaml.Node, t reflect.Type, path string) error {
	fields := map[string]reflect.Type{}
	var names []string
	addFields(t, func(name string, of reflect.Type) { fields[name], names = of, append(names, name) })
	return walkPairs(n, path, nil, func(key *yaml.Node, at string) (reflect.Type, error) {
		ft, ok := fields[key.Value]
		if !ok {
			hint := ""
			if meant := control.DidYouMean(key.Value, names); meant != "" {
				hint = meant + " "
			}
			return nil, errAt(key, at, "unknown key; %sknown here: %s", hint, strings.Join(names, ", "))
		}
		return ft, nil
	})
}

// addFields calls add for each key of a struct, including the keys of inlined structs.
func addFields(t reflect.Type, add func(name string, of reflect.Type)) {
	for f := range t.Fields() {
		switch name := f.Tag.Get("yaml"); name {
		case ",inline":
			addFields(f.Type, add)
		case "-":
		default:
			add(name, f.Type)
		}
	}
}

// walkPairs checks each value of a mapping, and of the mappings that it merges (<<). of returns the type of a key's
// value. around contains the enclosing mappings that merge this mapping, to detect a cycle.
func walkPairs(n *yaml.Node, path string, around []*yaml.Node, of func(key *yaml.Node, at string) (reflect.Type, error)) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return errAt(n, path, "expected keys and values")
	}
	if slices.Contains(around, n) {
		return errAt(n, path, "the mapping merges itself (<<)")
	}
	around = append(slices.Clone(around), n)
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return errAt(key, path, "a key must be a string")
		}
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		if slices.Contains(seen, key.Value) {
			return errAt(key, at, "the key is given twice")
		}
		seen = append(seen, key.Value)
		if key.ShortTag() == "!!merge" {
			merged := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				merged = value.Content
			}
			for _, m := range merged {
				if err := walkPairs(m, path, around, of); err != nil {
					return err
				}
			}
			continue
		}
		t, err := of(key, at)
		if err != nil {
			return err
		}
		if err := walk(value, t, at); err != nil {
			return err
		}
	}
	return nil
}

// walkFree checks the values of a mapping whose keys may be any text.
func walkFree(n *yaml.Node, t reflect.Type, path string) error {
	if n.Tag == "!!null" {
		return nil
	}
	return walkPairs(n, path, nil, func(*yaml.Node, string) (reflect.Type, error) { return t.Elem(), nil })
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return "a text"
	}
}

func errAt(n *yaml.Node, path, format string, args ...any) error {
	if path == "" {
		path = "the file"
	}
	return fmt.Errorf("%s (line %d): %s", path, n.Line, fmt.Sprintf(format, args...))
}
