package openapi

import (
	"encoding/json"
	"fmt"
	"go/format"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// A Sample is a program that sends a request of the API.
type Sample struct {
	Language string // curl, TypeScript, Python or Go
	Text     string
}

// Samples returns samples of an operation, with the example of the document. baseURL is the address of the server.
func (m *Model) Samples(op Operation, baseURL string) []Sample {
	return []Sample{
		{"curl", curlSample(op, baseURL)},
		{"TypeScript", typescriptSample(op, baseURL)},
		{"Python", pythonSample(op, baseURL)},
		{"Go", m.goSample(op, baseURL)},
	}
}

// example returns the body of the sample; nil for none. A form has no contacts, because the file has them.
func (op Operation) example() any {
	if op.Body == "" {
		return nil
	}
	v := op.RequestBody.Content["application/json"].Example
	if members, ok := v.(map[string]any); ok && op.File {
		members = maps.Clone(members)
		delete(members, "planned_calls")
		v = members
	}
	return v
}

// id returns the example of the path parameter.
func (op Operation) id() string {
	for _, p := range op.Parameters {
		if p.In == "path" {
			return fmt.Sprint(p.Example)
		}
	}
	return ""
}

// required returns the values of parameters without which the request fails.
func (op Operation) required() map[string]any {
	out := map[string]any{}
	for _, p := range op.Query {
		if p.Required {
			out[p.Name] = p.Example
		}
	}
	return out
}

func curlSample(op Operation, baseURL string) string {
	to, query := baseURL+strings.Replace(op.Path, "{id}", op.id(), 1), url.Values{}
	for name, v := range op.required() {
		query.Set(name, fmt.Sprint(v))
	}
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	lines := []string{"curl", `-H "Authorization: Bearer $PARLEY_API_KEY"`}
	if op.Keyed {
		lines = append(lines, `-H "Idempotency-Key: order-1001"`)
	}
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	switch body := op.example(); {
	case op.File:
		text, _ := json.Marshal(body) // decoded from JSON
		lines = append(lines, "-F "+quoted("campaign="+string(text)+";type=application/json"), "-F rows=@contacts.csv")
	case body != nil:
		lines = append(lines, `-H "Content-Type: application/json"`, "-d "+quoted(jsonStyle().literal(body)))
	}
	if method := map[bool]string{true: "POST", false: "GET"}[op.example() != nil]; method != op.Method {
		lines[0] += " -X " + op.Method
	}
	lines[0] += " " + quoted(to)
	return strings.Join(lines, " \\\n  ") + "\n"
}

func typescriptSample(op Operation, baseURL string) string {
	var args []string
	if op.ByID {
		args = append(args, fmt.Sprintf("%q", op.id()))
	}
	if body := op.example(); body != nil {
		args = append(args, typescriptStyle().literal(body))
	}
	head := "import { Parley } from \"@parley-voice/sdk\";\n"
	if op.File {
		head, args = "import { openAsBlob } from \"node:fs\";\n"+head, append(args, `await openAsBlob("contacts.csv")`)
	}
	if query := op.required(); len(query) > 0 {
		args = append(args, typescriptStyle().literal(query))
	}
	call := fmt.Sprintf("parley.%s(%s)", Camel(op.OperationID), strings.Join(args, ", "))
	use := "const result = await " + call + ";\nconsole.log(result);\n"
	if op.Items != "" {
		use = "for await (const item of " + call + ") {\n  console.log(item);\n}\n"
	}
	return fmt.Sprintf("%s\nconst parley = new Parley({ baseUrl: %q, apiKey: process.env.PARLEY_API_KEY! });\n%s", head, baseURL, use)
}

func pythonSample(op Operation, baseURL string) string {
	var args []string
	if op.ByID {
		args = append(args, fmt.Sprintf("%q", op.id()))
	}
	if body := op.example(); body != nil {
		args = append(args, pythonStyle().literal(body))
	}
	if op.File {
		args = append(args, "file")
	}
	query := op.required()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		args = append(args, name+"="+pythonStyle().literal(query[name]))
	}
	call := fmt.Sprintf("client.%s(%s)", strings.ReplaceAll(op.OperationID, "-", "_"), strings.Join(args, ", "))
	use := "result = " + call + "\nprint(result)\n"
	switch {
	case op.Items != "":
		use = "for item in " + call + ":\n    print(item)\n"
	case op.File:
		use = "with open(\"contacts.csv\", \"rb\") as file:\n    result = " + strings.ReplaceAll(call, "\n", "\n    ") + "\nprint(result)\n"
	}
	return fmt.Sprintf("import os\n\nimport parley\n\nclient = parley.Client(%q, os.environ[\"PARLEY_API_KEY\"])\n%s", baseURL, use)
}

func (m *Model) goSample(op Operation, baseURL string) string {
	args := []string{"ctx"}
	if op.ByID {
		args = append(args, fmt.Sprintf("%q", op.id()))
	}
	if body := op.example(); body != nil {
		args = append(args, m.goValue(Schema{Ref: reference(op.Body)}, body, true))
	}
	const check = "if err != nil {\n\treturn err\n}\n"
	open := ""
	if op.File {
		open = "file, err := os.Open(\"contacts.csv\")\n" + check + "defer file.Close()\ninfo, err := file.Stat()\n" + check
		args = append(args, "parley.ContactFile{Content: file, Size: info.Size()}")
	}
	if len(op.Query) > 0 {
		var fields []string
		for _, p := range op.Query {
			if p.Required {
				fields = append(fields, Pascal(p.Name)+": "+m.goValue(p.Schema, p.Example, true))
			}
		}
		args = append(args, "parley."+Pascal(op.OperationID)+"Params{"+strings.Join(fields, ", ")+"}")
	}
	call := fmt.Sprintf("client.%s(%s)", Pascal(op.OperationID), strings.Join(args, ", "))
	use := "result, err := " + call + "\n" + check + "fmt.Println(result)\n"
	if op.Items != "" {
		use = "for item, err := range " + call + " {\n\tif err != nil {\n\t\treturn err\n\t}\n\tfmt.Println(item)\n}\n"
	}
	text := fmt.Sprintf("// import parley \"github.com/parley-voice/parley/api/sdk/go\"\n\n"+
		"client, err := parley.NewClient(%q, os.Getenv(\"PARLEY_API_KEY\"))\n%s%s%s", baseURL, check, open, use)
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return text // a test compiles all samples
	}
	return string(formatted)
}

// goValue returns a value of a type of the Go SDK.
func (m *Model) goValue(s Schema, v any, required bool) string {
	kind, nullable := s.Kind()
	if name := s.Reference(); name != "" {
		members, _ := v.(map[string]any)
		of, fields := m.Components.Schemas[name], []string{}
		for _, field := range slices.Sorted(maps.Keys(members)) {
			fields = append(fields, Pascal(field)+": "+m.goValue(of.Properties[field], members[field], slices.Contains(of.Required, field)))
		}
		star := map[bool]string{true: "&"}[nullable || !required]
		return star + goStyle().join("parley."+name+"{", fields, "}", "")
	}
	switch list, _ := v.([]any); kind {
	case "array":
		var all []string
		for _, e := range list {
			all = append(all, strings.TrimPrefix(m.goValue(*s.Items, e, true), "parley."+s.Items.Reference()))
		}
		return goStyle().join(GoType(s, true, "parley.")+"{", all, "}", "")
	case "object":
		return goStyle().literal(v)
	case "number":
		if text := fmt.Sprint(v); nullable && !strings.Contains(text, ".") {
			v = json.Number(text + ".0") // Ptr needs the type
		}
	}
	text := goStyle().literal(v)
	if nullable {
		return "parley.Ptr(" + text + ")"
	}
	return text
}
