package api

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	doc, err := openapi.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	ops := operations(t, doc)
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

// An sdkOperation is a method of the SDKs.
type sdkOperation struct {
	openapi.Operation

	safe bool // the client may repeat the request
}

// unsafe lists the operations whose repetition has an effect of its own: it replaces a secret, or fails.
var unsafe = []string{"create-key", "save-webhook", "remove-webhook"}

func operations(t *testing.T, m *openapi.Model) (all []sdkOperation) {
	t.Helper()
	for _, op := range m.Operations {
		all = append(all, sdkOperation{op, !slices.Contains(unsafe, op.OperationID)})
	}
	if len(all) < 30 {
		t.Fatalf("%d operations", len(all))
	}
	return all
}

// page returns the operation that reads one page of a list.
func (op sdkOperation) page() sdkOperation {
	op.OperationID, op.Items = op.OperationID+"-page", ""
	return op
}

// methodsOf adds the operations that read one page or upload a file.
func methodsOf(all []sdkOperation) (out []sdkOperation) {
	for _, op := range all {
		if out = append(out, op); op.Items != "" {
			out = append(out, op.page())
		}
		if op.Form {
			out = append(out, sdkOperation{op.FromFile(), op.safe})
		}
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
