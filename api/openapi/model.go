package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Model is the extended document in the form that the explorer and the SDKs are generated from.
type Model struct {
	Servers    []struct{ URL string }
	Tags       []struct{ Name, Description string }
	Paths      map[string]map[string]Operation
	Components struct{ Schemas map[string]Schema }
	Webhooks   map[string]struct{ Post Operation }

	// Operations are those of Paths, by their id.
	Operations []Operation `json:"-"`
}

// A Schema describes a value.
type Schema struct {
	Ref                  string            `json:"$ref"`
	Type                 any               `json:"type"`
	Description          string            `json:"description"`
	Properties           map[string]Schema `json:"properties"`
	Required             []string          `json:"required"`
	Items                *Schema           `json:"items"`
	AnyOf                []Schema          `json:"anyOf"`
	OneOf                []Schema          `json:"oneOf"`
	AdditionalProperties any               `json:"additionalProperties"`
	Enum                 []any             `json:"enum"`
	Default              any               `json:"default"`
	Minimum              json.Number       `json:"minimum"`
	Maximum              json.Number       `json:"maximum"`
	MaxLength            int               `json:"maxLength"`
	Format               string            `json:"format"`
}

// Kind returns the type without null, and whether null is permitted.
func (s Schema) Kind() (kind string, nullable bool) {
	switch v := s.Type.(type) {
	case string:
		return v, false
	case []any:
		kind, _ = v[0].(string)
		return kind, true
	}
	return "", len(s.AnyOf) > 0
}

// Reference returns the name of the schema that s refers to; of several alternatives, the first.
func (s Schema) Reference() string {
	if len(s.AnyOf) > 0 {
		s = s.AnyOf[0]
	}
	return strings.TrimPrefix(s.Ref, "#/components/schemas/")
}

// Values returns the schema of the values of a map; nil if s is none, or its values are not described.
func (s Schema) Values() *Schema {
	m, ok := s.AdditionalProperties.(map[string]any)
	if !ok || len(m) == 0 {
		return nil
	}
	text, _ := json.Marshal(m) // decoded before
	var v Schema
	_ = json.Unmarshal(text, &v)
	return &v
}

// Media is a body in one format.
type Media struct {
	Schema  Schema
	Example any
}

// A Content is a request body or a response.
type Content struct {
	Description string
	Content     map[string]Media
}

// A Parameter is one of the path, the query or a header.
type Parameter struct {
	Name, In, Description string
	Required              bool
	Schema                Schema
	Example               any
}

// An Operation is a request of the API.
type Operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	Parameters                        []Parameter
	RequestBody                       *Content
	Responses                         map[string]Content

	Path   string      `json:"-"`
	Method string      `json:"-"`
	Query  []Parameter `json:"-"`
	ByID   bool        `json:"-"` // the path contains an id
	Body   string      `json:"-"` // schema of the body; empty for none
	Form   bool        `json:"-"` // the body may be a form with a file
	File   bool        `json:"-"` // the body is a form with a file
	Keyed  bool        `json:"-"` // takes an Idempotency-Key
	Result Schema      `json:"-"` // empty for a file
	Items  string      `json:"-"` // member of a page that has the items; empty if the result is no page
	Item   string      `json:"-"` // schema of the items
}

// Read reads the extended document.
func Read(document []byte) (*Model, error) {
	m := &Model{}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber() // numbers of examples keep their form
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	for path, item := range m.Paths {
		for method, op := range item {
			op.Path, op.Method, op.ByID = path, strings.ToUpper(method), strings.Contains(path, "{id}")
			m.Operations = append(m.Operations, m.complete(op))
		}
	}
	slices.SortFunc(m.Operations, func(a, b Operation) int { return cmp.Compare(a.OperationID, b.OperationID) })
	return m, nil
}

func (m *Model) complete(op Operation) Operation {
	for _, p := range op.Parameters {
		op.Keyed = op.Keyed || p.Name == "Idempotency-Key"
		if p.In == "query" {
			op.Query = append(op.Query, p)
		}
	}
	slices.SortFunc(op.Query, func(a, b Parameter) int { return cmp.Compare(a.Name, b.Name) })
	if op.RequestBody != nil {
		op.Body = op.RequestBody.Content["application/json"].Schema.Reference()
		_, op.Form = op.RequestBody.Content["multipart/form-data"]
	}
	for status, r := range op.Responses {
		if status[0] == '2' {
			op.Result = r.Content["application/json"].Schema
		}
	}
	page := m.Components.Schemas[op.Result.Reference()].Properties
	if _, paged := page["next_cursor"]; paged {
		for name, p := range page {
			if p.Items != nil {
				op.Items, op.Item = name, p.Items.Reference()
			}
		}
	}
	return op
}

// FromFile returns the operation that uploads a file instead of a JSON body.
func (op Operation) FromFile() Operation {
	op.OperationID, op.File = op.OperationID+"-from-file", true
	op.Summary = strings.Replace(op.Summary, "import its list", "import its list from a file", 1)
	return op
}

func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
}

// Pascal returns a name like CallID.
func Pascal(name string) string {
	upper := []string{"id", "url", "urls", "ms", "amd", "sip", "dnc", "ice", "whip", "mos", "llm", "tts", "asr", "vad", "eou", "ivr"}
	var out strings.Builder
	for _, w := range words(name) {
		if slices.Contains(upper, w) {
			out.WriteString(strings.Replace(strings.ToUpper(w), "URLS", "URLs", 1))
		} else {
			out.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return out.String()
}

// Camel returns a name like callId.
func Camel(name string) string {
	var out strings.Builder
	for i, w := range words(name) {
		if i > 0 {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		out.WriteString(w)
	}
	return out.String()
}

// GoType returns the type of a value in the Go SDK. of stands before the names of schemas, such as "parley.".
func GoType(s Schema, required bool, of string) string {
	kind, nullable := s.Kind()
	if name := s.Reference(); name != "" {
		if nullable || !required {
			return "*" + of + name
		}
		return of + name
	}
	star := ""
	if nullable {
		star = "*"
	}
	switch kind {
	case "string":
		return star + "string"
	case "boolean":
		return star + "bool"
	case "integer":
		return star + "int"
	case "number":
		return star + "float64"
	case "array":
		return "[]" + GoType(*s.Items, true, of)
	case "object":
		if values := s.Values(); values != nil {
			return "map[string]" + GoType(*values, true, of)
		}
		return "map[string]any"
	}
	return "any"
}
