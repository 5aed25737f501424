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

// Text is an agent as a file writes it, without its name and without what is empty.
func (a Agent) Text() (string, error) {
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

// prune leaves out what says nothing.
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
		prune(v)
		empty := v.Tag == "!!null" || v.Kind == yaml.ScalarNode && (v.Value == "" || v.Value == "0" && v.Tag == "!!int") || v.Kind != yaml.ScalarNode && len(v.Content) == 0
		if !empty {
			kept = append(kept, n.Content[i], v)
		}
	}
	n.Content = kept
}

// ParseAgent reads an agent that is written whole: what the text does not say is as
// it is by default. Its errors are those of Parse.
func ParseAgent(name, text string) (Agent, error) {
	var doc yaml.Node
	var a Agent
	err := yaml.NewDecoder(strings.NewReader(text)).Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return a, errors.New("the text is empty")
	case err != nil:
		return a, fmt.Errorf("this is no YAML: %w", err)
	}
	if err = walk(doc.Content[0], reflect.TypeOf(a), ""); err != nil {
		return a, err
	}
	if err = doc.Decode(&a); err != nil {
		return a, err
	}
	if a.Name != "" && a.Name != name {
		return a, fmt.Errorf("name: %q: an agent keeps its name", a.Name)
	}
	usual := Written(agents.Agent{Draft: agents.Default()})
	a.Name, a.Published = name, nil
	if a.Analysis == nil {
		a.Analysis = &Analysis{}
	}
	orUsual(reflect.ValueOf(a.Analysis).Elem(), reflect.ValueOf(usual.Analysis).Elem())
	orUsual(reflect.ValueOf(&a).Elem(), reflect.ValueOf(&usual).Elem())
	return a, nil
}

// orUsual sets the pointers of a struct that are nil to those of another.
func orUsual(v, usual reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && f.IsNil() {
			f.Set(usual.Field(i))
		}
	}
}

// MarshalYAML implements yaml.Marshaler.
func (o Open) MarshalYAML() (any, error) {
	if len(o.RawMessage) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	var v any
	err := json.Unmarshal(o.RawMessage, &v)
	return v, err
}
