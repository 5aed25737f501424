package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// explorerView is what the page of the explorer shows.
type explorerView struct {
	BaseURL string
	Groups  []viewGroup
	Events  []viewType // of webhooks
	Schemas []viewSchema
}

type viewGroup struct {
	Name, Description string
	Operations        []viewOperation
}

type viewOperation struct {
	Operation

	Body       []viewField
	Example    string // of the body
	Successes  []viewResponse
	Failures   []viewResponse
	Samples    []Sample
	FromFile   []Sample
	Parameters []viewField
}

type viewResponse struct {
	Status, Text, Description, Example string // Text names the status
	Type                               viewType
}

// A viewType is a type, of which a part may be the name of a schema.
type viewType struct{ Before, Name, After string }

type viewField struct {
	Name, In, Description, Example string
	Type                           viewType
	Required                       bool // of a request
	MayBeAbsent                    bool // from a response
	Notes                          []string
}

type viewSchema struct {
	Name   string
	Fields []viewField
}

func (m *Model) view() explorerView {
	v := explorerView{BaseURL: "https://parley.example"}
	if len(m.Servers) > 0 && m.Servers[0].URL != "/" {
		v.BaseURL = strings.TrimRight(m.Servers[0].URL, "/")
	}
	for _, tag := range m.Tags {
		g := viewGroup{Name: tag.Name, Description: tag.Description}
		for _, op := range m.Operations {
			if slices.Contains(op.Tags, tag.Name) {
				g.Operations = append(g.Operations, m.viewOperation(op, v.BaseURL))
			}
		}
		slices.SortStableFunc(g.Operations, func(a, b viewOperation) int { return cmp.Compare(a.Path, b.Path) })
		v.Groups = append(v.Groups, g)
	}
	for _, event := range slices.Sorted(maps.Keys(m.Webhooks)) {
		t := typeOf(m.Webhooks[event].Post.RequestBody.Content["application/json"].Schema)
		v.Events = append(v.Events, viewType{event, t.Name, ""})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Components.Schemas)) {
		fields := fieldsOf(m.Components.Schemas[name])
		if !strings.HasSuffix(name, requestSuffix) {
			for i, f := range fields {
				fields[i].Required, fields[i].MayBeAbsent = false, !f.Required
			}
		}
		v.Schemas = append(v.Schemas, viewSchema{name, fields})
	}
	return v
}

func (m *Model) viewOperation(op Operation, baseURL string) viewOperation {
	v := viewOperation{Operation: op, Samples: m.Samples(op, baseURL)}
	if op.Form {
		v.FromFile = m.Samples(op.FromFile(), baseURL)
	}
	for _, p := range op.Parameters {
		f := fieldOf(p.Name, p.Schema, p.Required)
		f.In, f.Description = p.In, p.Description
		if p.Example != nil {
			f.Example = fmt.Sprint(p.Example)
		}
		v.Parameters = append(v.Parameters, f)
	}
	if body := op.example(); body != nil {
		v.Body, v.Example = fieldsOf(m.Components.Schemas[op.Body]), jsonStyle().literal(body)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		code, _ := strconv.Atoi(status) // those of operations are numbers
		shown := viewResponse{Status: status, Text: http.StatusText(code), Description: r.Description, Type: viewType{Before: "file"}}
		if status[0] != '2' {
			v.Failures = append(v.Failures, shown)
			continue
		}
		for kind, media := range r.Content {
			if kind == "application/json" {
				shown.Type = typeOf(media.Schema)
				shown.Example = jsonStyle().literal(media.Example)
			} else if text, ok := media.Example.(string); ok {
				shown.Example = text
			}
		}
		v.Successes = append(v.Successes, shown)
	}
	return v
}

func fieldsOf(s Schema) []viewField {
	var all []viewField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		all = append(all, fieldOf(name, s.Properties[name], slices.Contains(s.Required, name)))
	}
	slices.SortStableFunc(all, func(a, b viewField) int { // required members first
		return cmp.Compare(map[bool]int{true: 0, false: 1}[a.Required], map[bool]int{true: 0, false: 1}[b.Required])
	})
	return all
}

func fieldOf(name string, s Schema, required bool) viewField {
	f := viewField{Name: name, Description: s.Description, Type: typeOf(s), Required: required}
	note := func(format string, v any) { f.Notes = append(f.Notes, fmt.Sprintf(format, v)) }
	if len(s.Enum) > 0 {
		var all []string
		for _, v := range s.Enum {
			all = append(all, fmt.Sprint(v))
		}
		note("one of %s", strings.Join(all, ", "))
	}
	switch {
	case s.Minimum != "" && s.Maximum != "":
		note("%v", s.Minimum+" to "+s.Maximum)
	case s.Minimum != "":
		note("at least %v", s.Minimum)
	case s.Maximum != "":
		note("at most %v", s.Maximum)
	}
	if s.MaxLength > 0 {
		note("at most %d characters", s.MaxLength)
	}
	if s.Default != nil {
		note("default %v", s.Default)
	}
	return f
}

func typeOf(s Schema) viewType {
	kind, nullable := s.Kind()
	t := viewType{Before: kind}
	switch {
	case s.Reference() != "":
		t = viewType{Name: s.Reference()}
		for _, more := range s.AnyOf[min(1, len(s.AnyOf)):] {
			if more.Ref != "" {
				t.After += " or " + more.Reference()
			}
		}
	case kind == "array" && s.Items != nil:
		of := typeOf(*s.Items)
		t = viewType{strings.TrimSuffix("list of "+of.Before, " "), of.Name, of.After}
		if of.Name != "" {
			t.Before = "list of " + of.Before
		}
	case kind == "object" && s.Values() != nil:
		of := typeOf(*s.Values())
		t = viewType{"map of " + of.Before, of.Name, of.After}
	case len(s.OneOf) > 0:
		var all []string
		for _, one := range s.OneOf {
			all = append(all, typeOf(one).Before)
		}
		t.Before = strings.Join(all, " or ")
	case kind == "":
		t.Before = "any"
	}
	if nullable {
		t.After += " or null"
	}
	return t
}
