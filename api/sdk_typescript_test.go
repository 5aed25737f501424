package api

import (
	"bytes"
	"fmt"
	"strings"
)

// typescriptClient returns the operations; openapi-typescript generates the schemas that they use.
func typescriptClient(doc sdkDocument, ops []sdkOperation) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// %s\n\nimport type { components, operations } from \"./schema.js\";\n"+
		"import { Transport, type RequestOptions } from \"./transport.js\";\n\ntype Schemas = components[\"schemas\"];\n", generatedBy)
	for _, name := range sorted(doc.Components.Schemas) {
		if !strings.HasSuffix(name, "Error") {
			fmt.Fprintf(&b, "export type %s = Schemas[%q];\n", name, name)
		}
	}
	for _, op := range ops {
		if len(op.query) > 0 {
			fmt.Fprintf(&b, "export type %sQuery = NonNullable<operations[%q][\"parameters\"][\"query\"]>;\n", pascal(op.OperationID), op.OperationID)
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
	fields := fmt.Sprintf("method: %q, path: %q", op.method, op.path)
	if op.byID {
		args, fields = append(args, "id: string"), fields+", id"
	}
	if op.body != "" {
		args, fields = append(args, "body: "+op.body), fields+", body"
	}
	if op.file {
		args, fields = append(args, "file: Blob"), fields+", file"
	}
	if len(op.query) > 0 {
		query, fallback := pascal(list)+"Query", " = {}"
		for _, p := range op.query {
			if p.Required {
				fallback = ""
			}
		}
		args, fields = append(args, "query: "+query+fallback), fields+", query"
	}
	args = append(args, "options?: RequestOptions")
	if op.keyed {
		fields += ", keyed: true"
	}
	if op.safe {
		fields += ", safe: true"
	}
	result, call := "Promise<Uint8Array>", "download"
	switch {
	case op.items != "":
		result, call = "AsyncGenerator<"+op.item+", void, undefined>", fmt.Sprintf("pages<%s>", op.item)
		fields = fmt.Sprintf("{ %s }, %q", fields, op.items)
	case op.result.Items != nil:
		result, call = "Promise<"+op.result.Items.reference()+"[]>", "send<"+op.result.Items.reference()+"[]>"
	case op.result.Ref != "":
		result, call = "Promise<"+op.result.reference()+">", "send<"+op.result.reference()+">"
	}
	if op.items == "" {
		fields = "{ " + fields + " }"
	}
	fmt.Fprintf(b, "  /** %s (%s %s). */\n  %s(%s): %s {\n    return this.%s(%s, options);\n  }\n\n",
		strings.TrimSuffix(op.Summary, "."), op.method, op.path, camel(op.OperationID), strings.Join(args, ", "), result, call, fields)
}
