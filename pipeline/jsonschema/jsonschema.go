// Package jsonschema validates tool arguments against a subset of JSON Schema (draft 2020-12).
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
	maxDepth = 16       // levels of a schema
	maxSize  = 64 << 10 // bytes of a schema
)

// A Schema is a parsed schema. It is safe for concurrent use.
type Schema struct {
	types      []string
	properties map[string]*Schema
	required   []string
	closed     bool // for objects: Check rejects properties that are not in properties
	enum       []any
	items      *Schema
	pattern    *regexp.Regexp

	minimum, maximum     *json.Number
	minLength, maxLength *int // in characters
	minItems, maxItems   *int
}

// rawSchema is the JSON form of a Schema. Parse rejects unsupported keywords, so that no constraint is
// silently ignored. It accepts the annotations (the fields from Draft on) and ignores them.
type rawSchema struct {
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

// Parse parses a schema. An error names the location within the schema.
func Parse(text json.RawMessage) (*Schema, error) {
	if len(text) > maxSize {
		return nil, fmt.Errorf("schema has %d bytes; at most %d are accepted", len(text), maxSize)
	}
	return parse(text, "", 0)
}

func parse(text json.RawMessage, at string, depth int) (*Schema, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: schema has more than %d levels", location(at), maxDepth)
	}
	var w rawSchema
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return nil, fmt.Errorf("%s: %w", location(at), err)
	}
	s := &Schema{
		required: w.Required, enum: w.Enum, minimum: w.Minimum, maximum: w.Maximum,
		minLength: w.MinLength, maxLength: w.MaxLength, minItems: w.MinItems, maxItems: w.MaxItems,
	}
	var err error
	if s.types, err = readTypes(w.Type); err != nil {
		return nil, fmt.Errorf("%s: %w", location(at), err)
	}
	s.closed = slices.Contains(s.types, "object") || len(w.Properties) > 0
	if w.Additional != nil {
		s.closed = !*w.Additional
	}
	if w.Pattern != "" {
		if s.pattern, err = regexp.Compile(w.Pattern); err != nil {
			return nil, fmt.Errorf("%s: pattern: %w", location(at), err)
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
			return nil, fmt.Errorf("type: unknown type %q; accepted: %s", t, strings.Join(known, ", "))
		}
	}
	return all, nil
}

// Check returns nil if value is valid. Otherwise the error names the location and the problem, so that
// a language model can correct the value.
func (s *Schema) Check(value json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("not JSON: unexpected data after the value")
	}
	return s.check(v, "")
}

func (s *Schema) check(v any, at string) error {
	if len(s.types) > 0 && !slices.ContainsFunc(s.types, func(t string) bool { return hasType(v, t) }) {
		return fmt.Errorf("%s: want %s, got %s", location(at), strings.Join(s.types, " or "), typeName(v))
	}
	if s.enum != nil && !slices.ContainsFunc(s.enum, func(e any) bool { return equal(e, v) }) {
		accepted, err := json.Marshal(s.enum)
		return errors.Join(fmt.Errorf("%s: want one of %s", location(at), accepted), err)
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
			return fmt.Errorf("%s: missing", location(join(at, name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, ok := s.properties[name]
		if !ok && s.closed {
			accepted := strings.Join(slices.Sorted(maps.Keys(s.properties)), ", ")
			return fmt.Errorf("%s: unknown property; accepted: %s", location(join(at, name)), accepted)
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
		return fmt.Errorf("%s: number of items %d is out of range", location(at), len(v))
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
		return fmt.Errorf("%s: %d characters; at least %d are required", location(at), n, *s.minLength)
	case s.maxLength != nil && n > *s.maxLength:
		return fmt.Errorf("%s: %d characters; at most %d are accepted", location(at), n, *s.maxLength)
	case s.pattern != nil && !s.pattern.MatchString(v):
		return fmt.Errorf("%s: does not match %s", location(at), s.pattern)
	}
	return nil
}

func (s *Schema) checkNumber(v json.Number, at string) error {
	switch {
	case s.minimum != nil && compare(v, *s.minimum) < 0:
		return fmt.Errorf("%s: %s is less than %s", location(at), v, *s.minimum)
	case s.maximum != nil && compare(v, *s.maximum) > 0:
		return fmt.Errorf("%s: %s is more than %s", location(at), v, *s.maximum)
	}
	return nil
}

// maxNumber is the most characters of a number that is compared exactly.
const maxNumber = 64

// toRat returns the exact value. It returns nil if the number has more than maxNumber characters or an
// exponent of more than two digits.
func toRat(n json.Number) *big.Rat {
	_, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if len(n) > maxNumber || len(strings.TrimLeft(exponent, "+-0")) > 2 {
		return nil
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return r
}

// compare returns -1, 0 or 1, like cmp.Compare. It compares floating-point values if toRat returns nil.
func compare(a, b json.Number) int {
	x, y := toRat(a), toRat(b)
	if x != nil && y != nil {
		return x.Cmp(y)
	}
	f, _ := a.Float64() // ±Inf if the number is too large
	g, _ := b.Float64()
	switch {
	case f < g:
		return -1
	case f > g:
		return 1
	}
	return 0
}

func hasType(v any, t string) bool {
	if n, ok := v.(json.Number); ok && t == "integer" {
		r := toRat(n)
		return r != nil && r.IsInt()
	}
	k := typeName(v)
	return k == t
}

func typeName(v any) string {
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

// equal reports whether two values are equal. Numbers are compared by value.
func equal(a, b any) bool {
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

func location(at string) string {
	if at == "" {
		return "the value"
	}
	return at
}
