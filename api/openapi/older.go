package openapi

import (
	"encoding/json"
	"fmt"
)

// To30 converts an OpenAPI 3.1 document to OpenAPI 3.0.3, for generators that only read that. Webhooks, which 3.0 does
// not have, become the extension x-webhooks.
func To30(document []byte) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	doc = older(doc)
	doc["openapi"] = "3.0.3"
	if hooks, ok := doc["webhooks"]; ok {
		delete(doc, "webhooks")
		doc["x-webhooks"] = hooks
	}
	return json.MarshalIndent(doc, "", " ")
}

// older returns an object of the document in the form of 3.0, with all objects in it.
func older(m map[string]any) map[string]any {
	out := map[string]any{}
	for key, v := range m {
		switch v := v.(type) {
		case map[string]any:
			switch key {
			case "example", "default": // values
				out[key] = v
			case "properties": // schemas by names, which may be those of keywords
				named := map[string]any{}
				for name, s := range v {
					named[name] = older(s.(map[string]any))
				}
				out[key] = named
			default:
				out[key] = older(v)
			}
		case []any:
			if key == "examples" && len(v) > 0 {
				out["example"] = v[0]
				continue
			}
			if out[key] = v; key == "anyOf" || key == "oneOf" || key == "parameters" {
				out[key] = olderList(v)
			}
		default:
			if out[key] = v; key == "contentMediaType" {
				delete(out, key)
			}
		}
	}
	return olderTypes(out)
}

func olderList(list []any) []any {
	out := []any{}
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			e = older(m)
		}
		out = append(out, e)
	}
	return out
}

// olderTypes replaces the type null, and members beside a reference, which 3.0 ignores.
func olderTypes(s map[string]any) map[string]any {
	if kinds, ok := s["type"].([]any); ok && len(kinds) == 2 && kinds[1] == "null" {
		s["type"], s["nullable"] = kinds[0], true
	}
	if ref, ok := s["$ref"]; ok && len(s) > 1 {
		delete(s, "$ref")
		s["allOf"] = []any{map[string]any{"$ref": ref}}
	}
	choices, _ := s["anyOf"].([]any)
	last := len(choices) - 1
	if last < 1 {
		return s
	}
	if null, ok := choices[last].(map[string]any); !ok || null["type"] != "null" {
		return s
	}
	s["type"], s["nullable"] = "object", true // what may be null besides is an object
	if s["anyOf"] = choices[:last]; last == 1 {
		s["allOf"] = s["anyOf"]
		delete(s, "anyOf")
	}
	return s
}
