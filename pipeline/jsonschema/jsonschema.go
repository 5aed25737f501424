// Package jsonschema checks values against a small part of JSON Schema
// (draft 2020-12): what models are told of the arguments of a tool.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	deepest = 16       // levels of a schema
	longest = 64 << 10 // bytes of a schema
)

// A Schema is a schema that was read. It is safe for concurrent use.
type Schema struct {
	types      []string
	properties map[string]*Schema
	required   []string
	closed     bool // no further properties
	enum       []any
	items      *Schema
	pattern    *regexp.Regexp

	minimum, maximum     *json.Number
	minLength, maxLength *int // characters
	minItems, maxItems   *int
}

// wire is a schema as it is written. What it has not is refused, lest it be
// taken for checked; what only explains is passed over.
type wire struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Additional *bool                      `json:"additionalProperties"`
	Enum       []any                      `json:"enum"`
	Items      json.RawMessage            `json:"items"`
	Pattern    string                     `json:"pattern"`
	Minimum    *json.Number               `json:"minimum"`
	Maximum    *json.Number               `json:"maximum"`
	MinLength  *int                       `json:"minLength"`
	MaxLength  *int                       `json:"maxLength"`
	MinItems   *int                       `json:"minItems"`
	MaxItems   *int                       `json:"maxItems"`

	Draft       any `json:"$schema"`
	Title       any `json:"title"`
	Description any `json:"description"`
	Default     any `json:"default"`
	Examples    any `json:"examples"`
	Format      any `json:"format"`
}

// Parse reads a schema. Its error tells where it is wrong.
func Parse(text json.RawMessage) (*Schema, error) {
	if len(text) > longest {
		return nil, fmt.Errorf("the schema has %d bytes: at most %d are read", len(text), longest)
	}
	return parse(text, "", 0)
}

func parse(text json.RawMessage, at string, depth int) (*Schema, error) {
	if depth > deepest {
		return nil, fmt.Errorf("%s: more than %d levels", place(at), deepest)
	}
	var w wire
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return nil, fmt.Errorf("%s: %w", place(at), err)
	}
	s := &Schema{
		required: w.Required, closed: w.Additional != nil && !*w.Additional, enum: w.Enum, minimum: w.Minimum, maximum: w.Maximum,
		minLength: w.MinLength, maxLength: w.MaxLength, minItems: w.MinItems, maxItems: w.MaxItems,
	}
	var err error
	if s.types, err = readTypes(w.Type); err != nil {
		return nil, fmt.Errorf("%s: %w", place(at), err)
	}
	if w.Pattern != "" {
		if s.pattern, err = regexp.Compile(w.Pattern); err != nil {
			return nil, fmt.Errorf("%s: pattern: %w", place(at), err)
		}
	}
	if len(w.Items) > 0 {
		if s.items, err = parse(w.Items, at+"[]", depth+1); err != nil {
			return nil, err
		}
	}
	s.properties = map[string]*Schema{}
	for _, name := range slices.Sorted(maps.Keys(w.Properties)) {
		if s.properties[name], err = parse(w.Properties[name], join(at, name), depth+1); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func readTypes(text json.RawMessage) ([]string, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var one string
	var all []string
	if json.Unmarshal(text, &one) == nil {
		all = []string{one}
	} else if json.Unmarshal(text, &all) != nil {
		return nil, errors.New("type: use a name or a list of names")
	}
	known := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	for _, t := range all {
		if !slices.Contains(known, t) {
			return nil, fmt.Errorf("type: %q is none of %s", t, strings.Join(known, ", "))
		}
	}
	return all, nil
}

// Check returns what is wrong with a value, and where, in words that a model
// can act on.
func (s *Schema) Check(value json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("not JSON: something follows the value")
	}
	return s.check(v, "")
}

func (s *Schema) check(v any, at string) error {
	if len(s.types) > 0 && !slices.ContainsFunc(s.types, func(t string) bool { return is(v, t) }) {
		return fmt.Errorf("%s: want %s, got %s", place(at), strings.Join(s.types, " or "), kind(v))
	}
	if s.enum != nil && !slices.ContainsFunc(s.enum, func(e any) bool { return same(e, v) }) {
		accepted, err := json.Marshal(s.enum)
		return errors.Join(fmt.Errorf("%s: want one of %s", place(at), accepted), err)
	}
	switch v := v.(type) {
	case map[string]any:
		return s.checkObject(v, at)
	case []any:
		return s.checkArray(v, at)
	case string:
		return s.checkString(v, at)
	case json.Number:
		return s.checkNumber(v, at)
	}
	return nil
}

func (s *Schema) checkObject(v map[string]any, at string) error {
	for _, name := range s.required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s: missing", place(join(at, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, ok := s.properties[name]
		if !ok && s.closed {
			return fmt.Errorf("%s: unknown; known: %s", place(join(at, name)), strings.Join(slices.Sorted(maps.Keys(s.properties)), ", "))
		}
		if !ok {
			continue
		}
		if err := p.check(v[name], join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) checkArray(v []any, at string) error {
	if s.minItems != nil && len(v) < *s.minItems || s.maxItems != nil && len(v) > *s.maxItems {
		return fmt.Errorf("%s: %d items are not as many as may be", place(at), len(v))
	}
	if s.items == nil {
		return nil
	}
	for i, x := range v {
		if err := s.items.check(x, fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) checkString(v, at string) error {
	n := utf8.RuneCountInString(v)
	switch {
	case s.minLength != nil && n < *s.minLength:
		return fmt.Errorf("%s: %d characters, at least %d are wanted", place(at), n, *s.minLength)
	case s.maxLength != nil && n > *s.maxLength:
		return fmt.Errorf("%s: %d characters, at most %d are wanted", place(at), n, *s.maxLength)
	case s.pattern != nil && !s.pattern.MatchString(v):
		return fmt.Errorf("%s: does not match %s", place(at), s.pattern)
	}
	return nil
}

func (s *Schema) checkNumber(v json.Number, at string) error {
	switch {
	case s.minimum != nil && compare(v, *s.minimum) < 0:
		return fmt.Errorf("%s: %s is less than %s", place(at), v, *s.minimum)
	case s.maximum != nil && compare(v, *s.maximum) > 0:
		return fmt.Errorf("%s: %s is more than %s", place(at), v, *s.maximum)
	}
	return nil
}

// longestNumber bounds the digits and the exponent that are reckoned with.
const longestNumber = 64

// exact reads a number; nil where it is larger or finer than anybody means.
func exact(n json.Number) *big.Rat {
	_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if len(n) > longestNumber || len(strings.TrimLeft(exponent, "+-0")) > 2 {
		return nil
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return r
}

// compare orders numbers; one that cannot be reckoned with goes by its
// floating-point value.
func compare(a, b json.Number) int {
	x, y := exact(a), exact(b)
	if x != nil && y != nil {
		return x.Cmp(y)
	}
	f, _ := a.Float64() // ±Inf where it is too large
	g, _ := b.Float64()
	switch {
	case f < g:
		return -1
	case f > g:
		return 1
	}
	return 0
}

func is(v any, t string) bool {
	if n, ok := v.(json.Number); ok && t == "integer" {
		r := exact(n)
		return r != nil && r.IsInt()
	}
	k := kind(v)
	return k == t
}

func kind(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	default:
		return "null"
	}
}

// same tells whether two values are equal, numbers by their value.
func same(a, b any) bool {
	x, isX := a.(json.Number)
	y, isY := b.(json.Number)
	if isX && isY {
		return compare(x, y) == 0
	}
	s, err := json.Marshal(a)
	t, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(s, t)
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func place(at string) string {
	if at == "" {
		return "the value"
	}
	return at
}
