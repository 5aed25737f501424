package apply

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads an operator's file. An error names the path of the key it is
// about, and, where a key is unknown, the ones that are known there.
func Parse(r io.Reader) (Spec, error) {
	var doc yaml.Node
	d := yaml.NewDecoder(r)
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return Spec{}, errors.New("the file is empty")
		}
		return Spec{}, fmt.Errorf("the file is no YAML: %w", err)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return Spec{}, errors.New("the file holds more than one document")
	}
	var s Spec
	if err := walk(doc.Content[0], reflect.TypeOf(s), ""); err != nil {
		return Spec{}, err
	}
	if err := doc.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("the file: %w", err)
	}
	return s, s.check()
}

// walk holds the document to the shape of t.
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
	if t == reflect.TypeFor[Open]() {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return walkMap(n, t, path)
	case reflect.Map:
		return walkFree(n, t, path)
	case reflect.Slice:
		if n.Tag == "!!null" {
			return nil
		}
		if n.Kind != yaml.SequenceNode {
			return fault(n, path, "a list is expected")
		}
		for i, item := range n.Content {
			if err := walk(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	default:
		if n.Kind != yaml.ScalarNode || n.Decode(reflect.New(t).Interface()) != nil {
			return fault(n, path, "%s is expected", kindName(t))
		}
		return nil
	}
}

func walkMap(n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind != yaml.MappingNode {
		return fault(n, path, "keys and values are expected")
	}
	fields := map[string]reflect.Type{}
	var names []string
	for f := range t.Fields() {
		name := f.Tag.Get("yaml")
		fields[name] = f.Type
		names = append(names, name)
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		ft, ok := fields[key.Value]
		if !ok {
			return fault(key, at, "unknown key; known here: %s", strings.Join(names, ", "))
		}
		if slices.Contains(seen, key.Value) {
			return fault(key, at, "the key is given twice")
		}
		seen = append(seen, key.Value)
		if err := walk(n.Content[i+1], ft, at); err != nil {
			return err
		}
	}
	return nil
}

// walkFree holds a mapping whose keys the operator chooses to its values' shape.
func walkFree(n *yaml.Node, t reflect.Type, path string) error {
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fault(n, path, "keys and values are expected")
	}
	var seen []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := path + "." + key.Value
		if key.Kind != yaml.ScalarNode {
			return fault(key, path, "a key is a text")
		}
		if slices.Contains(seen, key.Value) {
			return fault(key, at, "the key is given twice")
		}
		seen = append(seen, key.Value)
		if err := walk(n.Content[i+1], t.Elem(), at); err != nil {
			return err
		}
	}
	return nil
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

func fault(n *yaml.Node, path, format string, args ...any) error {
	if path == "" {
		path = "the file"
	}
	return fmt.Errorf("%s (line %d): %s", path, n.Line, fmt.Sprintf(format, args...))
}
