package api

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/parley-voice/parley/api/openapi"
)

// typescriptClient returns the operations; openapi-typescript generates the schemas that they use.
func typescriptClient(doc *openapi.Model, ops []sdkOperation) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\nimport type { components, operations } from \"./schema.js\";\n"+
		"import { Transport, type RequestOptions } from \"./transport.js\";\n\ntype Schemas = components[\"schemas\"];\n", generatedBy)
	for _, name := range sorted(doc.Components.Schemas) {
		if !strings.HasSuffix(name, "Error") {
			fmt.Fprintf(&b, "export type %s = Schemas[%q];\n", name, name)
		}
	}
	for _, op := range ops {
		if len(op.Query) > 0 {
			fmt.Fprintf(&b, "export type %sQuery = NonNullable<operations[%q][\"parameters\"][\"query\"]>;\n", openapi.Pascal(op.OperationID), op.OperationID)
		}
	}
	b.WriteString("\n/** The requests of the API. */\nexport class Operations extends Transport {\n")
	for _, op := range methodsOf(ops) {
		typescriptMethod(&b, op)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func typescriptMethod(b *bytes.Buffer, op sdkOperation) {
	list := strings.TrimSuffix(op.OperationID, "-page")
	var args []string
	fields := fmt.Sprintf("method: %q, path: %q", op.Method, op.Path)
	if op.ByID {
		args, fields = append(args, "id: string"), fields+", id"
	}
	if op.Body != "" {
		args, fields = append(args, "body: "+op.Body), fields+", body"
	}
	if op.File {
		args, fields = append(args, "file: Blob"), fields+", file"
	}
	if len(op.Query) > 0 {
		query, fallback := openapi.Pascal(list)+"Query", " = {}"
		for _, p := range op.Query {
			if p.Required {
				fallback = ""
			}
		}
		args, fields = append(args, "query: "+query+fallback), fields+", query"
	}
	args = append(args, "options?: RequestOptions")
	if op.Keyed {
		fields += ", keyed: true"
	}
	if op.safe {
		fields += ", safe: true"
	}
	result, call := "Promise<Uint8Array>", "download"
	switch {
	case op.Items != "":
		result, call = "AsyncGenerator<"+op.Item+", void, undefined>", fmt.Sprintf("pages<%s>", op.Item)
		fields = fmt.Sprintf("{ %s }, %q", fields, op.Items)
	case op.Result.Items != nil:
		result, call = "Promise<"+op.Result.Items.Reference()+"[]>", "send<"+op.Result.Items.Reference()+"[]>"
	case op.Result.Ref != "":
		result, call = "Promise<"+op.Result.Reference()+">", "send<"+op.Result.Reference()+">"
	}
	if op.Items == "" {
		fields = "{ " + fields + " }"
	}
	fmt.Fprintf(b, "  /** %s (%s %s). */\n  %s(%s): %s {\n    return this.%s(%s, options);\n  }\n\n",
		strings.TrimSuffix(op.Summary, "."), op.Method, op.Path, openapi.Camel(op.OperationID), strings.Join(args, ", "), result, call, fields)
}
