package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/control/agents"
)

// YAML returns an agent in the form of the file, without the name and without empty fields.
func (a Agent) YAML() (string, error) {
	var n yaml.Node
	if err := n.Encode(a); err != nil {
		return "", fmt.Errorf("agent %q: %w", a.Name, err)
	}
	prune(&n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "name" {
			n.Content = append(n.Content[:i], n.Content[i+2:]...)
			break
		}
	}
	var b strings.Builder
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&n), e.Close()); err != nil {
		return "", fmt.Errorf("agent %q: %w", a.Name, err)
	}
	return b.String(), nil
}

func prune(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			prune(c)
		}
		return
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		v := n.Content[i+1]
		if n.Content[i].Value == "parameters" && v.Kind == yaml.MappingNode { // a JSON Schema, in which empty values have a meaning
			kept = append(kept, n.Content[i], v)
			continue
		}
		prune(v)
		empty := v.Tag == "!!null" || v.Kind == yaml.ScalarNode && (v.Value == "" || v.Value == "0" && v.Tag == "!!int") ||
			v.Kind != yaml.ScalarNode && len(v.Content) == 0
		if !empty {
			kept = append(kept, n.Content[i], v)
		}
	}
	n.Content = kept
}

// ParseAgent parses a complete agent. Missing fields get their defaults. It returns the same errors as Parse.
func ParseAgent(name, text string) (Agent, error) {
	var doc yaml.Node
	var a Agent
	err := yaml.NewDecoder(strings.NewReader(text)).Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return a, errors.New("the text is empty")
	case err != nil:
		return a, fmt.Errorf("invalid YAML: %w", err)
	}
	if err = walk(doc.Content[0], reflect.TypeOf(a), ""); err != nil {
		return a, err
	}
	if err = doc.Decode(&a); err != nil {
		return a, err
	}
	if a.Name != "" && a.Name != name {
		return a, fmt.Errorf("name: %q: the name of an agent cannot be changed", a.Name)
	}
	usual := FromAgent(agents.Agent{Draft: agents.Default()})
	a.Name, a.Published = name, nil
	if a.Analysis == nil {
		a.Analysis = &Analysis{}
	}
	fillDefaults(reflect.ValueOf(a.Analysis).Elem(), reflect.ValueOf(usual.Analysis).Elem())
	fillDefaults(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&usual).Elem())
	return a, nil
}

// fillDefaults replaces each nil pointer of the struct v by the same field of usual.
func fillDefaults(v, usual reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && f.IsNil() {
			f.Set(usual.Field(i))
		}
	}
}

// MarshalYAML implements yaml.Marshaler.
func (o RawValue) MarshalYAML() (any, error) {
	if len(o.RawMessage) == 0 {
		return nil, nil //nolint:nilnil // null
	}
	var v any
	err := json.Unmarshal(o.RawMessage, &v)
	return v, err
}
