package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestExtendedSchema covers /openapi-extended.json. Besides, each response and each webhook that any test gets is checked
// against this document.
func TestExtendedSchema(t *testing.T) {
	checkAll(t, "X", []statement{
		{1, "/openapi-extended.json requires no key and has a schema for each successful JSON response", extendedIsComplete},
		{2, "a response that lacks a member, has another type or has an unknown member does not match", deviationsAreFound},
	})
}

func extendedIsComplete(t *testing.T, s *service) {
	doc := s.empty(t).do(t, "GET", "/openapi-extended.json", "", "Authorization", "").want(t, 200).object(t)
	plain := s.empty(t).do(t, "GET", "/openapi.json", "", "Authorization", "").want(t, 200).object(t)
	if n := len(doc["paths"].(map[string]any)); doc["openapi"] != "3.1.0" || n != len(plain["paths"].(map[string]any)) {
		t.Errorf("openapi %v, %d paths", doc["openapi"], n)
	}
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			for status, r := range op.(map[string]any)["responses"].(map[string]any) {
				media, isJSON := r.(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
				if kind := media["schema"]; isJSON && status[0] == '2' && fmt.Sprint(kind) == "map[type:object]" {
					t.Errorf("%s %s %s: %v", method, path, status, kind)
				}
			}
		}
	}
}

func deviationsAreFound(t *testing.T, s *service) {
	o := s.organization(t)
	id := o.place(t, s.busyNumber())
	call := o.do(t, "GET", "/v1/calls/"+id, "").want(t, 200).object(t)
	for name, change := range map[string]func(){
		"a missing member":          func() { delete(call, "status") },
		"another type":              func() { call["status"] = 1.0 },
		"null":                      func() { call["status"] = nil },
		"a fraction":                func() { call["attempt"] = 1.5 },
		"an unknown member":         func() { call["unknown"] = 1.0 },
		"an unknown member, nested": func() { call["latency"] = map[string]any{"turns": 0.0, "x": 1.0} },
		"a list for an object":      func() { call["latency"] = []any{} },
	} {
		call = o.do(t, "GET", "/v1/calls/"+id, "").want(t, 200).object(t)
		change()
		text, err := json.Marshal(call)
		if err != nil {
			t.Fatal(err)
		}
		if s.typed.checkResponse(t.Context(), s.url, "GET", "/v1/calls/"+id, 200, text) == nil {
			t.Errorf("%s matches", name)
		}
	}
}

// typedDocument is the extended document of a service.
type typedDocument struct {
	once sync.Once
	err  error
	doc  struct {
		Paths    map[string]map[string]map[string]any
		Webhooks map[string]struct {
			Post struct{ RequestBody map[string]any }
		}
		Components struct{ Schemas map[string]map[string]any }
	}
}

func (d *typedDocument) load(ctx context.Context, url string) error {
	d.once.Do(func() {
		r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url+"/openapi-extended.json", http.NoBody)
		if err != nil {
			d.err = err
			return
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			d.err = err
			return
		}
		text, err := io.ReadAll(resp.Body)
		d.err = errors.Join(err, resp.Body.Close(), json.Unmarshal(text, &d.doc))
	})
	return d.err
}

// checkResponse returns how a successful response deviates from the document; nil if it matches.
func (d *typedDocument) checkResponse(ctx context.Context, url, method, path string, status int, body []byte) error {
	path, _, _ = strings.Cut(path, "?")
	if status/100 != 2 || !strings.HasPrefix(path, "/v1/") {
		return nil
	}
	if err := d.load(ctx, url); err != nil {
		return err
	}
	for pattern, item := range d.doc.Paths {
		op, ok := item[strings.ToLower(method)]
		if !ok || !matches(pattern, path) {
			continue
		}
		responses, _ := op["responses"].(map[string]any)
		r, ok := responses[fmt.Sprint(status)].(map[string]any)
		if !ok {
			return fmt.Errorf("%s %s: status %d is not described", method, pattern, status)
		}
		return d.checkBody(method+" "+pattern, r, body)
	}
	return nil // the path is described nowhere, as other tests find
}

// checkEvent is checkResponse for a delivery of a webhook.
func (d *typedDocument) checkEvent(ctx context.Context, url, event string, body []byte) error {
	if err := d.load(ctx, url); err != nil {
		return err
	}
	hook, ok := d.doc.Webhooks[event]
	if !ok {
		return fmt.Errorf("event %s is not described", event)
	}
	return d.checkBody(event, hook.Post.RequestBody, body)
}

// matches reports whether a path fits a pattern such as /v1/calls/{id}.
func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(p, s string) bool { return p == s || p == "{id}" && s != "phone" && s != "web" })
}

func (d *typedDocument) checkBody(where string, described map[string]any, body []byte) error {
	content, _ := described["content"].(map[string]any)
	media, isJSON := content["application/json"].(map[string]any)
	if !isJSON {
		return nil // a file
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	return d.check(where, media["schema"].(map[string]any), v)
}

// check returns how a value deviates from a schema. Members that an object's schema does not have are deviations.
func (d *typedDocument) check(at string, s map[string]any, v any) error {
	if ref, ok := s["$ref"].(string); ok {
		return d.check(at, d.doc.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]], v)
	}
	if alternatives, ok := s["anyOf"].([]any); ok {
		var all []error
		for _, a := range alternatives {
			err := d.check(at, a.(map[string]any), v)
			if err == nil {
				return nil
			}
			all = append(all, err)
		}
		return errors.Join(all...)
	}
	if kinds := listOf(s["type"]); s["type"] != nil && !slices.ContainsFunc(kinds, func(k any) bool { return isKind(v, k) }) {
		return fmt.Errorf("%s is %v, want %v", at, v, kinds)
	}
	var all []error
	switch v := v.(type) {
	case []any:
		items, _ := s["items"].(map[string]any)
		for i, e := range v {
			all = append(all, d.check(fmt.Sprintf("%s[%d]", at, i), items, e))
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		values, _ := s["additionalProperties"].(map[string]any)
		for _, name := range listOf(s["required"]) {
			if _, there := v[fmt.Sprint(name)]; !there {
				all = append(all, fmt.Errorf("%s.%v is missing", at, name))
			}
		}
		for name, e := range v {
			p, known := properties[name].(map[string]any)
			if !known && properties != nil {
				all = append(all, fmt.Errorf("%s.%s is not described", at, name))
			}
			if !known {
				p = values
			}
			all = append(all, d.check(at+"."+name, p, e))
		}
	}
	return errors.Join(all...)
}

func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

func isKind(v, kind any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	default:
		return kind == "object"
	}
}
