package api

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/openapi"
)

// pythonType returns the Python type of a schema.
func pythonType(s openapi.Schema) string {
	kind, nullable := s.Kind()
	out := "Any"
	switch {
	case len(s.AnyOf) > 0:
		var all []string
		for _, a := range s.AnyOf[:len(s.AnyOf)-1] {
			all = append(all, a.Reference())
		}
		out = strings.Join(all, " | ")
	case s.Ref != "":
		out = s.Reference()
	case kind == "string":
		out = "str"
	case kind == "boolean":
		out = "bool"
	case kind == "integer":
		out = "int"
	case kind == "number":
		out = "float"
	case kind == "array":
		out = "list[" + pythonType(*s.Items) + "]"
	case kind == "object":
		out = "dict[str, Any]"
		if values := s.Values(); values != nil {
			out = "dict[str, " + pythonType(*values) + "]"
		}
	}
	if nullable && out != "Any" {
		out += " | None"
	}
	return out
}

func pythonClient(doc *openapi.Model, ops []sdkOperation) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# %s
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

from ._transport import Transport

if TYPE_CHECKING:
    from typing_extensions import NotRequired
`, generatedBy)
	for _, name := range sorted(doc.Components.Schemas) {
		if !strings.HasSuffix(name, "Error") {
			pythonSchema(&b, name, doc.Components.Schemas[name])
		}
	}
	fmt.Fprintln(&b, "\n\n__all__ = [")
	for _, name := range sorted(doc.Components.Schemas) {
		if !strings.HasSuffix(name, "Error") {
			fmt.Fprintf(&b, "    %q,\n", name)
		}
	}
	b.WriteString("    \"Operations\",\n]\n\n\nclass Operations(Transport):\n    \"\"\"The requests of the API.\"\"\"\n")
	for _, op := range methodsOf(ops) {
		pythonMethod(&b, op)
	}
	return b.Bytes()
}

func pythonSchema(b *bytes.Buffer, name string, s openapi.Schema) {
	_, keyword := s.Properties["import"]
	line, end := "    %s: %s\n", ""
	if keyword { // such a member requires the functional syntax
		fmt.Fprintf(b, "\n\n%s = TypedDict(\n    %q,\n    {\n", name, name)
		line, end = "        %q: %q,\n", "    },\n)\n"
	} else {
		fmt.Fprintf(b, "\n\nclass %s(TypedDict):\n", name)
	}
	for _, p := range sorted(s.Properties) {
		typ := pythonType(s.Properties[p])
		if !slices.Contains(s.Required, p) {
			typ = "NotRequired[" + typ + "]"
		}
		fmt.Fprintf(b, line, p, typ)
	}
	b.WriteString(end)
}

func pythonMethod(b *bytes.Buffer, op sdkOperation) {
	args, fields := "self", fmt.Sprintf("%q, %q", op.Method, op.Path)
	if op.ByID {
		args, fields = args+", id: str", fields+", id=id"
	}
	if op.Body != "" {
		args, fields = args+", body: "+op.Body, fields+", body=body"
	}
	if op.File {
		args, fields = args+", file: BinaryIO", fields+", file=file"
	}
	args += ", *"
	var query []string
	for _, p := range op.Query {
		if p.Required {
			args += fmt.Sprintf(", %s: %s", p.Name, pythonType(p.Schema))
		} else {
			args += fmt.Sprintf(", %s: %s | None = None", p.Name, pythonType(p.Schema))
		}
		query = append(query, fmt.Sprintf("%q: %s", p.Name, p.Name))
	}
	if query != nil {
		fields += ", query={" + strings.Join(query, ", ") + "}"
	}
	if op.Keyed {
		args, fields = args+", idempotency_key: str | None = None", fields+", keyed=True, idempotency_key=idempotency_key"
	}
	args += ", timeout: float | None = None"
	result, call := "bytes", "_send"
	switch {
	case op.Items != "":
		result, call, fields = "Iterator["+op.Item+"]", "_pages", fmt.Sprintf("%q, ", op.Items)+fields
	case op.Result.Type != nil || op.Result.Ref != "":
		result = pythonType(op.Result)
	}
	if op.safe {
		fields += ", safe=True"
	}
	fmt.Fprintf(b, "\n    def %s(%s) -> %s:\n        \"\"\"%s (%s %s).\"\"\"\n        return self.%s(%s, timeout=timeout)\n",
		strings.ReplaceAll(op.OperationID, "-", "_"), args, result, strings.TrimSuffix(op.Summary, "."), op.Method, op.Path, call, fields)
}
