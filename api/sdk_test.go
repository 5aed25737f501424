package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/openapi"
	"github.com/parley-voice/parley/api/schema"
)

var update = flag.Bool("update", false, "write the generated files of the SDKs")

// TestSDKsAreGenerated checks that the generated files of the SDKs fit the extended document. To write them:
//
//	go test ./api -run TestSDKsAreGenerated -update
func TestSDKsAreGenerated(t *testing.T) {
	text, err := openapi.Extended(schema.NewSet(), "", bodies())
	if err != nil {
		t.Fatal(err)
	}
	var doc sdkDocument
	if err = json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	ops := doc.operations(t)
	for name, want := range map[string][]byte{
		"openapi.json":                 append(text, '\n'),
		"go/generated.go":              goClient(t, doc, ops),
		"python/parley/_generated.py":  pythonClient(doc, ops),
		"typescript/src/operations.ts": typescriptClient(doc, ops),
	} {
		file := filepath.Join("sdk", name)
		if *update {
			if err = os.WriteFile(file, want, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s does not fit the API (%v): go test ./api -run TestSDKsAreGenerated -update", file, err)
		}
	}
}

type jsonSchema struct {
	Ref                  string                `json:"$ref"`
	Type                 any                   `json:"type"`
	Description          string                `json:"description"`
	Properties           map[string]jsonSchema `json:"properties"`
	Required             []string              `json:"required"`
	Items                *jsonSchema           `json:"items"`
	AnyOf                []jsonSchema          `json:"anyOf"`
	AdditionalProperties any                   `json:"additionalProperties"`
}

// kind returns the type without null, and whether null is permitted.
func (s jsonSchema) kind() (kind string, nullable bool) {
	switch v := s.Type.(type) {
	case string:
		return v, false
	case []any:
		kind, _ = v[0].(string)
		return kind, true
	}
	return "", len(s.AnyOf) > 0
}

// reference returns the name of the schema that s refers to; of several alternatives, the first.
func (s jsonSchema) reference() string {
	if len(s.AnyOf) > 0 {
		s = s.AnyOf[0]
	}
	return strings.TrimPrefix(s.Ref, "#/components/schemas/")
}

// values returns the schema of the values of a map; nil if s is none, or its values are not described.
func (s jsonSchema) values() *jsonSchema {
	m, ok := s.AdditionalProperties.(map[string]any)
	if !ok || len(m) == 0 {
		return nil
	}
	text, _ := json.Marshal(m) // decoded before
	var v jsonSchema
	_ = json.Unmarshal(text, &v)
	return &v
}

type sdkDocument struct {
	Paths      map[string]map[string]sdkOperation
	Components struct{ Schemas map[string]jsonSchema }
}

type sdkContent struct {
	Content map[string]struct{ Schema jsonSchema }
}

type sdkParameter struct {
	Name, In, Description string
	Required              bool
	Schema                jsonSchema
}

type sdkOperation struct {
	OperationID string
	Summary     string
	Parameters  []sdkParameter
	RequestBody *sdkContent
	Responses   map[string]sdkContent

	path, method string
	query        []sdkParameter
	byID         bool       // the path contains an id
	body         string     // schema of the body; empty for none
	form         bool       // the body may be a form with a file
	file         bool       // the body is a form with a file
	keyed        bool       // takes an Idempotency-Key
	safe         bool       // the client may repeat the request
	result       jsonSchema // empty for a file
	items        string     // member of a page that has the items; empty if the result is no page
	item         string     // schema of the items
}

// unsafe lists the operations whose repetition has an effect of its own: it replaces a secret, or fails.
var unsafe = []string{"create-key", "save-webhook", "remove-webhook"}

func (d sdkDocument) operations(t *testing.T) (all []sdkOperation) {
	t.Helper()
	for path, item := range d.Paths {
		for method, op := range item {
			op.path, op.method, op.byID = path, strings.ToUpper(method), strings.Contains(path, "{id}")
			op.safe = !slices.Contains(unsafe, op.OperationID)
			for _, p := range op.Parameters {
				op.keyed = op.keyed || p.Name == "Idempotency-Key"
				if p.In == "query" {
					op.query = append(op.query, p)
				}
			}
			slices.SortFunc(op.query, func(a, b sdkParameter) int { return cmp.Compare(a.Name, b.Name) })
			if op.RequestBody != nil {
				op.body = op.RequestBody.Content["application/json"].Schema.reference()
				_, op.form = op.RequestBody.Content["multipart/form-data"]
			}
			for status, r := range op.Responses {
				if status[0] == '2' {
					op.result = r.Content["application/json"].Schema
				}
			}
			page := d.Components.Schemas[op.result.reference()].Properties
			if _, paged := page["next_cursor"]; paged {
				for name, p := range page {
					if p.Items != nil {
						op.items, op.item = name, p.Items.reference()
					}
				}
			}
			all = append(all, op)
		}
	}
	if len(all) < 30 {
		t.Fatalf("%d operations", len(all))
	}
	slices.SortFunc(all, func(a, b sdkOperation) int { return cmp.Compare(a.OperationID, b.OperationID) })
	return all
}

// page returns the operation that reads one page of a list.
func (op sdkOperation) page() sdkOperation {
	op.OperationID, op.items = op.OperationID+"-page", ""
	return op
}

// fromFile returns the operation that uploads a file.
func (op sdkOperation) fromFile() sdkOperation {
	op.OperationID, op.Summary, op.file = op.OperationID+"-from-file", strings.Replace(op.Summary, "import its list", "import its list from a file", 1), true
	return op
}

// methodsOf adds the operations that read one page or upload a file.
func methodsOf(all []sdkOperation) (out []sdkOperation) {
	for _, op := range all {
		if out = append(out, op); op.items != "" {
			out = append(out, op.page())
		}
		if op.form {
			out = append(out, op.fromFile())
		}
	}
	return out
}

func words(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
}

// pascal returns a name like CallID.
func pascal(name string) string {
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

// camel returns a name like callId.
func camel(name string) string {
	out := ""
	for i, w := range words(name) {
		if i > 0 {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		out += w
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
