package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/schema"
)

// document is the decoded OpenAPI document.
func document(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func operations(t *testing.T, doc map[string]any, f func(name, path string, item, op map[string]any)) {
	t.Helper()
	n := 0
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if slices.Contains([]string{"get", "put", "post", "delete", "patch", "head", "options", "trace"}, method) {
				f(strings.ToUpper(method)+" "+path, path, item.(map[string]any), op.(map[string]any))
				n++
			}
		}
	}
	if n < 10 {
		t.Fatalf("%d operations", n)
	}
}

// TestDocumentIsValid checks that both versions of the document have all required parts once, and all references resolve.
func TestDocumentIsValid(t *testing.T) {
	d, err := New(schema.NewSet(), "https://parley.example")
	if err != nil {
		t.Fatal(err)
	}
	for version, text := range map[string][]byte{"3.1.0": d.JSON, "3.0.3": d.JSON30} {
		doc := document(t, text)
		info := doc["info"].(map[string]any)
		if doc["openapi"] != version || info["title"] == "" || info["version"] == "" {
			t.Errorf("%v %v, want %s", doc["openapi"], info, version)
		}
		references(t, doc, doc)
		tags := map[string]bool{}
		for _, tag := range doc["tags"].([]any) {
			tags[tag.(map[string]any)["name"].(string)] = true
		}
		fields(t, doc)
		ids := map[any]string{}
		operations(t, doc, func(name, path string, _, op map[string]any) {
			id := op["operationId"]
			if id == nil || ids[id] != "" || op["summary"] == nil {
				t.Errorf("%s: operationId %v, also of %q; summary %v", name, id, ids[id], op["summary"])
			}
			ids[id] = name
			for _, tag := range op["tags"].([]any) {
				if !tags[tag.(string)] {
					t.Errorf("%s: tag %v is not declared", name, tag)
				}
			}
			parameters(t, name, path, op)
			responses(t, name, op)
		})
	}
}

// parameters checks that the path parameters match the template of the path.
func parameters(t *testing.T, name, path string, op map[string]any) {
	t.Helper()
	var want, got []string
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		want = append(want, m[1])
	}
	seen := map[string]bool{}
	all, _ := op["parameters"].([]any)
	for _, p := range all {
		p := p.(map[string]any)
		key := fmt.Sprint(p["in"], p["name"])
		if seen[key] || p["schema"] == nil || p["description"] == nil {
			t.Errorf("%s: parameter %s is duplicate, or has no schema or description", name, key)
		}
		seen[key] = true
		if p["in"] == "path" {
			got = append(got, p["name"].(string))
			if p["required"] != true {
				t.Errorf("%s: %s is not required", name, key)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s has the path parameters %v", name, got)
	}
}

// fields checks that every member of a request body is described.
func fields(t *testing.T, doc map[string]any) {
	t.Helper()
	n := 0
	for name, s := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		properties, _ := s.(map[string]any)["properties"].(map[string]any)
		for field, p := range properties {
			if n++; p.(map[string]any)["description"] == nil {
				t.Errorf("%s: %s has no description", name, field)
			}
		}
	}
	if n < 60 {
		t.Errorf("%d fields", n)
	}
}

// responses checks the responses of every operation: at least one success, with an example and without a schema, and the
// error envelope.
func responses(t *testing.T, name string, op map[string]any) {
	t.Helper()
	good := 0
	all := op["responses"].(map[string]any)
	for status, r := range all {
		r := r.(map[string]any)
		content := r["content"].(map[string]any)
		if file, ok := content["text/csv"].(map[string]any); ok && status == "200" {
			if good++; file["example"] == nil {
				t.Errorf("%s %s: a file without an example", name, status)
			}
			continue
		}
		media := content["application/json"].(map[string]any)
		if r["description"] == "" || media["schema"] == nil {
			t.Errorf("%s %s: no description or no schema", name, status)
		}
		if status[0] == '2' {
			good++
			if media["example"] == nil || media["schema"].(map[string]any)["properties"] != nil {
				t.Errorf("%s %s: a success must have an example and no schema", name, status)
			}
		} else if ref, _ := media["schema"].(map[string]any)["$ref"].(string); !strings.HasSuffix(ref, "Error") {
			t.Errorf("%s %s: %q is not the envelope", name, status, ref)
		}
	}
	for _, status := range []string{"401", "429", "500", "503"} {
		if all[status] == nil {
			t.Errorf("%s does not document %s", name, status)
		}
	}
	if good == 0 {
		t.Errorf("%s never succeeds", name)
	}
}

func references(t *testing.T, doc map[string]any, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			var at any = doc
			for p := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[p]
			}
			if at == nil {
				t.Errorf("%s does not resolve", ref)
			}
		}
		for _, e := range v {
			references(t, doc, e)
		}
	case []any:
		for _, e := range v {
			references(t, doc, e)
		}
	}
}

// TestExamplesFit checks that every body has an example that matches its schema, and every schema is used.
func TestExamplesFit(t *testing.T) {
	set := schema.NewSet()
	d, err := New(set, "")
	if err != nil {
		t.Fatal(err)
	}
	operations(t, document(t, d.JSON), func(name, _ string, _, op map[string]any) {
		body, ok := op["requestBody"].(map[string]any)
		if !ok {
			return
		}
		media := body["content"].(map[string]any)["application/json"].(map[string]any)
		schemaName := strings.TrimPrefix(media["schema"].(map[string]any)["$ref"].(string), "#/components/schemas/")
		var res huma.ValidateResult
		huma.Validate(set.Registry(), set.Registry().Map()[schemaName], huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, media["example"], &res)
		if media["example"] == nil || len(res.Errors) > 0 {
			t.Errorf("%s: the example does not fit: %v", name, res.Errors)
		}
	})
	for name := range maps.Keys(set.Registry().Map()) {
		if !strings.Contains(string(d.JSON), `#/components/schemas/`+name+`"`) {
			t.Errorf("nothing refers to %s", name)
		}
	}
}

// TestFiltersNameTheirValues checks that the filters of calls name all values that the API accepts.
func TestFiltersNameTheirValues(t *testing.T) {
	for _, p := range filters() {
		for _, v := range calls.Choices(p.Name) {
			if !regexp.MustCompile(`\b` + v + `\b`).MatchString(p.Description) {
				t.Errorf("%s does not name %s", p.Name, v)
			}
		}
	}
}

// TestEveryRouteIsDescribed checks that the document has exactly the routes of the server's source.
func TestEveryRouteIsDescribed(t *testing.T) {
	text, err := os.ReadFile("../server.go")
	if err != nil {
		t.Fatal(err)
	}
	source := strings.ReplaceAll(string(text), "v1(EndRoute,", `v1("/v1/calls/{id}/end",`)
	var routed, described []string
	for _, m := range regexp.MustCompile(`v1\("([^"]+)", map\[string\]scoped\{(.*)\}\)`).FindAllStringSubmatch(source, -1) {
		for _, by := range regexp.MustCompile(`"([A-Z]+)":`).FindAllStringSubmatch(m[2], -1) {
			routed = append(routed, by[1]+" "+m[1])
		}
	}
	d, err := New(schema.NewSet(), "")
	if err != nil {
		t.Fatal(err)
	}
	operations(t, document(t, d.JSON), func(name, _ string, _, _ map[string]any) { described = append(described, name) })
	slices.Sort(routed)
	slices.Sort(described)
	if !slices.Equal(routed, described) {
		t.Errorf("routed    %q\ndescribed %q", routed, described)
	}
}

// TestCreationByForm checks that both versions of the document describe a creation with a file.
func TestCreationByForm(t *testing.T) {
	d, err := New(schema.NewSet(), "https://parley.example")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{d.JSON, d.JSON30} {
		post := document(t, text)["paths"].(map[string]any)["/v1/campaigns"].(map[string]any)["post"].(map[string]any)
		content := post["requestBody"].(map[string]any)["content"].(map[string]any)
		form, _ := content["multipart/form-data"].(map[string]any)
		if form == nil || content["application/json"] == nil {
			t.Fatalf("%v", slices.Collect(maps.Keys(content)))
		}
		parts := form["schema"].(map[string]any)["properties"].(map[string]any)
		if parts["campaign"] == nil || parts["rows"].(map[string]any)["format"] != "binary" {
			t.Errorf("%v", parts)
		}
	}
}

// TestTo30 checks each form that OpenAPI 3.0 does not have.
func TestTo30(t *testing.T) {
	for name, c := range map[string]struct{ from, want string }{
		"null":                {`{"s":{"type":["string","null"]}}`, `{"s":{"type":"string","nullable":true}}`},
		"reference or null":   {`{"s":{"anyOf":[{"$ref":"#/a"},{"type":"null"}]}}`, `{"s":{"type":"object","nullable":true,"allOf":[{"$ref":"#/a"}]}}`},
		"two or null":         {`{"s":{"anyOf":[{"$ref":"#/a"},{"$ref":"#/b"},{"type":"null"}]}}`, `{"s":{"type":"object","nullable":true,"anyOf":[{"$ref":"#/a"},{"$ref":"#/b"}]}}`},
		"two":                 {`{"s":{"anyOf":[{"$ref":"#/a"},{"type":"string"}]}}`, `{"s":{"anyOf":[{"$ref":"#/a"},{"type":"string"}]}}`},
		"text of a reference": {`{"s":{"$ref":"#/a","description":"d"}}`, `{"s":{"allOf":[{"$ref":"#/a"}],"description":"d"}}`},
		"examples":            {`{"s":{"examples":[1,2]}}`, `{"s":{"example":1}}`},
		"a file":              {`{"s":{"format":"binary","contentMediaType":"application/octet-stream"}}`, `{"s":{"format":"binary"}}`},
		"names of properties": {`{"properties":{"examples":{"type":["object","null"]},"type":{"type":"string"}}}`, `{"properties":{"examples":{"type":"object","nullable":true},"type":{"type":"string"}}}`},
		"an example":          {`{"example":{"type":["a","null"],"$ref":"x","y":1}}`, `{"example":{"type":["a","null"],"$ref":"x","y":1}}`},
		"in parameters":       {`{"parameters":[{"schema":{"type":["string","null"]}}]}`, `{"parameters":[{"schema":{"type":"string","nullable":true}}]}`},
		"webhooks":            {`{"webhooks":{"e":{}}}`, `{"x-webhooks":{"e":{}}}`},
	} {
		got, err := To30([]byte(c.from))
		if err != nil {
			t.Fatal(err)
		}
		want := document(t, []byte(c.want))
		want["openapi"] = "3.0.3"
		if !reflect.DeepEqual(document(t, got), want) {
			t.Errorf("%s: %s, want %v", name, got, want)
		}
	}
	if _, err := To30([]byte("[")); err == nil {
		t.Error("invalid JSON is accepted")
	}
}

func explorer(t *testing.T) *Explorer {
	t.Helper()
	text, err := os.ReadFile("../sdk/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewExplorer(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExplorerMarksFields checks that fields of requests are marked if they are required, and fields of responses if they may be
// absent.
func TestExplorerMarksFields(t *testing.T) {
	page := string(explorer(t).files[""].body)
	for id, want := range map[string][2]int{"TranscriptLine": {0, 1}, "CampaignRequest": {3, 0}, "Error": {0, 0}} {
		_, after, ok := strings.Cut(page, `id="schema-`+id+`"`)
		fields, _, _ := strings.Cut(after, "</details>")
		if got := [2]int{strings.Count(fields, "<em>required</em>"), strings.Count(fields, "may be absent")}; !ok || got != want {
			t.Errorf("%s: %d fields are required and %d may be absent, want %d", id, got[0], got[1], want)
		}
	}
}

// TestExplorerIsSmall limits what a browser loads.
func TestExplorerIsSmall(t *testing.T) {
	e := explorer(t)
	sum := 0
	for name, f := range e.files {
		t.Logf("%s: %d bytes, %d compressed", name, len(f.body), len(f.zipped))
		sum += len(f.zipped)
	}
	if sum > 150<<10 || len(e.files) != 3 {
		t.Errorf("%d files, %d bytes", len(e.files), sum)
	}
}
