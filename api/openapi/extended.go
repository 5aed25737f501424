package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/pricing"
)

// Bodies has Go values of the types of JSON bodies that only the extended document describes.
type Bodies struct {
	// Responses are the successful responses, by operation.
	Responses map[string]any
	// Webhooks are the deliveries, by event.
	Webhooks map[string]any
	// Names has the schema names of types, by package and type. Other types have their own name.
	Names map[string]string
}

// Extended builds the OpenAPI 3.1 document that also has schemas of successful responses and of webhooks, generated
// from their Go types. The names of schemas of requests get requestSuffix.
func Extended(set *schema.Set, publicURL string, b Bodies) ([]byte, error) {
	d, err := New(set, publicURL)
	if err != nil {
		return nil, err
	}
	text := string(d.JSON)
	for name := range set.Registry().Map() {
		text = strings.ReplaceAll(text, `"`+reference(name)+`"`, `"`+reference(requestName(name))+`"`)
	}
	var doc map[string]any
	if err = json.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	t := generator{names: b.Names, schemas: map[string]any{}, types: map[string]reflect.Type{}}
	components, _ := doc["components"].(map[string]any)
	requests, _ := components["schemas"].(map[string]any)
	for name, s := range requests {
		t.schemas[requestName(name)] = s
	}
	components["schemas"] = t.schemas
	paths, _ := doc["paths"].(map[string]any)
	for _, item := range paths {
		for _, op := range item.(map[string]any) {
			t.describe(op.(map[string]any), b.Responses)
		}
	}
	hooks := map[string]any{}
	for event, body := range b.Webhooks {
		hooks[event] = webhook(event, t.of(reflect.TypeOf(body)))
	}
	doc["webhooks"] = hooks
	if t.err == nil {
		t.err = t.describeFields()
	}
	if t.err != nil {
		return nil, t.err
	}
	return json.MarshalIndent(doc, "", " ")
}

//go:embed fields.yaml
var fieldTexts []byte

// describeFields adds the descriptions of fields.yaml. Every field of a generated schema must have one.
func (g *generator) describeFields() error {
	var texts map[string]map[string]string
	if err := yaml.Unmarshal(fieldTexts, &texts); err != nil {
		return fmt.Errorf("openapi: fields.yaml: %w", err)
	}
	for names, fields := range texts {
		for name := range strings.SplitSeq(names, ", ") {
			if g.types[name] == nil {
				return fmt.Errorf("openapi: fields.yaml: no schema %s", name)
			}
			for field, text := range fields {
				s, ok := g.properties(name)[field].(map[string]any)
				if !ok {
					return fmt.Errorf("openapi: fields.yaml: %s has no field %s", name, field)
				}
				s["description"] = text
			}
		}
	}
	for name := range g.types {
		for field, s := range g.properties(name) {
			if s.(map[string]any)["description"] == nil {
				return fmt.Errorf("openapi: fields.yaml: no description of %s: %s", name, field)
			}
		}
	}
	return nil
}

func (g *generator) properties(name string) map[string]any {
	return g.schemas[name].(map[string]any)["properties"].(map[string]any)
}

func reference(name string) string { return "#/components/schemas/" + name }

func requestName(name string) string {
	if strings.HasSuffix(name, "Error") {
		return name
	}
	return name + requestSuffix
}

// requestSuffix ends the names of schemas of requests.
const requestSuffix = "Request"

// describe sets the schema of an operation's successful responses.
func (g *generator) describe(op, bodies map[string]any) {
	id := fmt.Sprint(op["operationId"])
	responses, _ := op["responses"].(map[string]any)
	for status, r := range responses {
		content, _ := r.(map[string]any)["content"].(map[string]any)
		media, isJSON := content["application/json"].(map[string]any)
		if status[0] != '2' || !isJSON {
			continue
		}
		body, known := bodies[id]
		if !known {
			g.err = fmt.Errorf("openapi: the response of %s has no type", id)
			return
		}
		media["schema"] = g.of(reflect.TypeOf(body))
	}
}

func webhook(event string, body map[string]any) map[string]any {
	header := func(name, text string) map[string]any {
		return map[string]any{
			"name": name, "in": "header", "required": true, "description": text, "schema": map[string]any{"type": "string"},
		}
	}
	return map[string]any{"post": map[string]any{
		"operationId": event, "summary": "Delivery of the event " + event, "tags": []string{"calls"}, "security": []any{},
		"parameters": []any{
			header("webhook-id", "ID of the delivery. A repeated delivery has the same"),
			header("webhook-timestamp", "Time of this attempt, in epoch seconds"),
			header("webhook-signature", "Signatures by Standard Webhooks 1.0.0"),
		},
		"requestBody": map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": body}}},
		"responses": map[string]any{
			"200": map[string]any{"description": "Accepted"}, "4XX": map[string]any{"description": "Not accepted; the delivery is repeated"},
		},
	}}
}

// A generator generates schemas from Go types.
type generator struct {
	names   map[string]string
	schemas map[string]any
	types   map[string]reflect.Type
	err     error
}

// of returns the schema of a type: a reference if it is a struct.
func (g *generator) of(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[callview.Epoch]():
		return nullable(map[string]any{"type": "number"})
	case reflect.TypeFor[pricing.Amount]():
		return map[string]any{"type": "number"}
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	}
	if stored, ok := reflect.TypeAssert[interface{ Content() reflect.Type }](reflect.Zero(t)); ok {
		return nullable(g.of(stored.Content()))
	}
	switch kind := t.Kind(); kind {
	case reflect.Pointer:
		return nullable(g.of(t.Elem()))
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		return g.component(t)
	case reflect.Interface:
		return map[string]any{}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	default:
		g.err = fmt.Errorf("openapi: %v has no schema", t)
		return nil
	}
}

// component returns a reference to the schema of a struct.
func (g *generator) component(t reflect.Type) map[string]any {
	name := g.names[t.String()]
	if name == "" {
		name = strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	}
	ref := map[string]any{"$ref": reference(name)}
	if before, seen := g.types[name]; seen && before == t {
		return ref
	}
	if _, taken := g.schemas[name]; taken {
		g.err = fmt.Errorf("openapi: two schemas have the name %s; name %v otherwise", name, t)
		return nil
	}
	properties, required := map[string]any{}, []string{}
	g.types[name], g.schemas[name] = t, map[string]any{"type": "object", "properties": properties}
	for _, f := range reflect.VisibleFields(t) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && field == "" || field == "-" || !f.IsExported() {
			continue
		}
		properties[field] = g.field(f)
		if !strings.Contains(options, "omitempty") {
			required = append(required, field)
		}
	}
	if len(required) > 0 {
		g.schemas[name] = map[string]any{"type": "object", "properties": properties, "required": required}
	}
	return ref
}

func (g *generator) field(f reflect.StructField) map[string]any {
	if alternatives := f.Tag.Get("schema"); alternatives != "" {
		anyOf := []any{}
		for name := range strings.SplitSeq(alternatives, ",") {
			anyOf = append(anyOf, map[string]any{"$ref": reference(name)})
		}
		return map[string]any{"anyOf": append(anyOf, map[string]any{"type": "null"})}
	}
	typ := f.Type
	optional := typ.Kind() == reflect.Pointer && strings.Contains(f.Tag.Get("json"), ",omitempty")
	if optional {
		typ = typ.Elem() // nil is omitted and never null
	}
	s := maps.Clone(g.of(typ))
	if kinds, ok := s["type"].([]any); ok && f.Tag.Get("nullable") == "false" {
		s["type"] = kinds[0]
	}
	return s
}

func nullable(s map[string]any) map[string]any {
	switch kind := s["type"]; {
	case len(s) == 0:
		return s
	case kind == nil: // a reference
		return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	default:
		s = maps.Clone(s)
		s["type"] = []any{kind, "null"}
		return s
	}
}
