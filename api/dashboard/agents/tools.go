package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// toolTypes are the types of tools, and what each does.
func toolTypes(texts *ui.Texts) []ui.Option {
	all := ui.Options("http", "transfer_call", "end_call", "send_dtmf", "leave_voicemail")
	for i := range all {
		all[i].Label = texts.Label("agents.tool.type", all[i].Value)
	}
	return all
}

const (
	maxRows   = 30 // of parameters, and of headers
	emptyRows = 2  // added to a form
)

// numbered returns the position that the query names, from 0; -1 means a new item.
func numbered(r *ui.Request, have int) (int, error) {
	text := r.Query("n")
	if text == "" {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > have {
		return 0, ui.ErrNotFound
	}
	return n - 1, nil
}

// storedTools are the tools of a draft as in the file, with their secrets.
func storedTools(a agents.Agent) []apply.Tool {
	if all := apply.WithSecrets(a).Tools; all != nil {
		return *all
	}
	return nil
}

func (Agents) askTool(r *ui.Request) (ui.Page, error) {
	a, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	all := storedTools(a)
	n, err := numbered(r, len(all))
	if err != nil {
		return ui.Page{}, err
	}
	tool, title := apply.Tool{Type: r.Query("type")}, "agents.tool.title.new"
	if n >= 0 {
		tool, title = all[n], "agents.tool.title"
	}
	if !slices.ContainsFunc(toolTypes(r.Texts), func(o ui.Option) bool { return o.Value == tool.Type }) {
		tool.Type = "http"
	}
	rows, expressible := parameterRows(tool.Parameters.RawMessage)
	f := r.Form(ui.Form{
		Submit: r.Texts.T("agents.draft.submit"), Cancel: r.URL("agents/" + a.ID), Of: withSecrets(a),
		Fields: toolFields(r.Texts, tool, rows, expressible, n >= 0),
	})
	data := map[string]any{"Form": f, "Plain": plainFields(f), "Parameters": fieldRows(f, "parameter."), "Headers": fieldRows(f, "header.")}
	if !expressible {
		data["Schema"] = string(tool.Parameters.RawMessage)
		data["YAML"] = "agents/" + a.ID + "/text"
	}
	return ui.Page{
		Template: "tool.html", Title: r.Texts.T(title, "type", r.Texts.Label("agents.tool.type", tool.Type)),
		Crumbs: crumbs(r.Texts, agentLink(a)),
		Lead:   r.Texts.T("agents.tool.lead"), Data: data,
	}, nil
}

func toolFields(texts *ui.Texts, t apply.Tool, rows []parameterRow, expressible, exists bool) []ui.Field {
	all := []ui.Field{{Name: "type", Kind: ui.Hidden, Value: t.Type}}
	description := ui.Field{
		Name: "description", Label: texts.T("agents.tool.description.label"), Kind: ui.TextArea, Rows: 3, Value: t.Description,
		Optional: t.Type != "http",
		Help:     texts.T("agents.tool.description.help"),
	}
	switch t.Type {
	case "transfer_call":
		all = append(all, description, ui.Field{
			Name: "destinations", Label: texts.T("agents.tool.destinations.label"), Kind: ui.TextArea, Rows: 4, Code: true,
			Value:       destinationLines(t),
			Placeholder: texts.T("agents.tool.destinations.placeholder"), Help: texts.T("agents.tool.destinations.help"),
		})
	case "http":
		all = append(
			all,
			ui.Field{
				Name: "name", Label: texts.T("agents.tool.name.label"), Value: t.Name, Placeholder: "find_order",
				Help: texts.T("agents.tool.name.help"),
			},
			description,
			ui.Field{
				Name: "url", Label: texts.T("agents.tool.url.label"), Kind: ui.URL, Value: t.URL,
				Placeholder: "https://crm.example.com/orders",
			},
			ui.Field{
				Name: "method", Label: texts.T("agents.tool.method.label"), Kind: ui.Select, Value: t.Method,
				Options: append([]ui.Option{{Value: "", Label: texts.T("agents.tool.method.default")}},
					ui.Options("GET", "PUT", "PATCH", "DELETE", "POST")...),
				Help: texts.T("agents.tool.method.help"),
			},
			ui.Field{
				Name: "timeout_s", Label: texts.T("agents.tool.timeout_s.label"), Kind: ui.Number, Unit: texts.T("agents.tool.unit.seconds"),
				Min: "1", Max: "20", Optional: true,
				Value: ui.FormatFloat(t.TimeoutS), Placeholder: "8",
			},
			ui.Field{
				Name: "filler", Label: texts.T("agents.tool.filler.label"), Value: t.Filler, Optional: true,
				Placeholder: texts.T("agents.tool.filler.placeholder"),
				Help:        texts.T("agents.tool.filler.help"),
			},
		)
		if expressible {
			all = append(all, parameterFields(texts, rows)...)
		}
		all = append(all, headerFields(texts, t)...)
	default:
		all = append(all, description)
	}
	if exists {
		all = append(all, ui.CheckboxField("remove", texts.T("agents.tool.remove.label"), false))
	}
	return all
}

// plainFields are the fields outside of the tables of a tool.
func plainFields(f ui.Form) []ui.Field {
	return slices.DeleteFunc(slices.Clone(f.Fields), func(x ui.Field) bool {
		return x.Kind == ui.Hidden || strings.HasPrefix(x.Name, "parameter.") || strings.HasPrefix(x.Name, "header.")
	})
}

// fieldRows returns the fields whose names are PREFIX + row + "." + column, by row.
func fieldRows(f ui.Form, prefix string) (rows [][]ui.Field) {
	last := ""
	for _, x := range f.Fields {
		rest, ok := strings.CutPrefix(x.Name, prefix)
		if !ok {
			continue
		}
		if row, _, _ := strings.Cut(rest, "."); row != last || len(rows) == 0 {
			rows, last = append(rows, nil), row
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], x)
	}
	return rows
}

func destinationLines(t apply.Tool) string {
	var all []string
	for _, d := range t.Destinations {
		if d.Label == "" {
			all = append(all, d.Number)
		} else {
			all = append(all, d.Label+" = "+d.Number)
		}
	}
	return strings.Join(all, "\n")
}

// A parameterRow is an argument of a tool in the form.
type parameterRow struct {
	Name, Type, Description string
	Values                  []string // accepted strings; nil accepts any
	Required                bool
}

type (
	parameterSchema struct {
		Type       string                       `json:"type"`
		Properties map[string]parameterProperty `json:"properties"`
		Required   []string                     `json:"required,omitempty"`
	}
	parameterProperty struct {
		Type        string   `json:"type"`
		Description string   `json:"description,omitempty"`
		Enum        []string `json:"enum,omitempty"`
	}
)

func parameterTypes() []string { return []string{"string", "number", "integer", "boolean"} }

// parameterRows reads the JSON Schema of the arguments. ok is false if the form cannot express it.
func parameterRows(schema json.RawMessage) (rows []parameterRow, ok bool) {
	if len(schema) == 0 {
		return nil, true
	}
	var s parameterSchema
	d := json.NewDecoder(strings.NewReader(string(schema)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil || s.Type != "object" || len(s.Properties) > maxRows-emptyRows {
		return nil, false
	}
	for _, name := range s.Required {
		if _, has := s.Properties[name]; !has {
			return nil, false
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		if !slices.Contains(parameterTypes(), p.Type) || len(p.Enum) > 0 && p.Type != "string" ||
			slices.ContainsFunc(p.Enum, func(v string) bool { return v != strings.TrimSpace(v) || v == "" || strings.Contains(v, ",") }) {
			return nil, false
		}
		rows = append(rows, parameterRow{name, p.Type, p.Description, p.Enum, slices.Contains(s.Required, name)})
	}
	return rows, true
}

func parameterFields(texts *ui.Texts, rows []parameterRow) (all []ui.Field) {
	rows = append(slices.Clip(rows), make([]parameterRow, emptyRows)...)
	for i, row := range rows {
		at := fmt.Sprintf("parameter.%d.", i)
		all = append(
			all,
			ui.Field{Name: at + "name", Label: texts.T("agents.tool.parameter.name"), Value: row.Name, Optional: true},
			ui.Field{
				Name: at + "type", Label: texts.T("agents.tool.parameter.type"), Kind: ui.Select, Options: ui.Options(parameterTypes()...),
				Value: row.Type,
			},
			ui.Field{Name: at + "description", Label: texts.T("agents.tool.parameter.description"), Value: row.Description, Optional: true},
			ui.Field{
				Name: at + "values", Label: texts.T("agents.tool.parameter.values"), Value: strings.Join(row.Values, ", "), Optional: true,
				Placeholder: "any",
			},
			ui.CheckboxField(at+"required", texts.T("agents.tool.parameter.required"), row.Required),
		)
	}
	return all
}

// readParameters reads the rows of the form as JSON Schema.
func readParameters(r *ui.Request) (json.RawMessage, error) {
	s := parameterSchema{Type: "object", Properties: map[string]parameterProperty{}}
	for i := range maxRows {
		at := fmt.Sprintf("parameter.%d.", i)
		name := r.Text(at + "name")
		if name == "" {
			continue
		}
		if _, twice := s.Properties[name]; twice {
			return nil, ui.Invalid(at+"name", r.Texts.T("agents.tool.parameter.invalid.twice"))
		}
		p := parameterProperty{Type: r.Text(at + "type"), Description: r.Text(at + "description")}
		for v := range strings.SplitSeq(r.Text(at+"values"), ",") {
			if v = strings.TrimSpace(v); v != "" {
				p.Enum = append(p.Enum, v)
			}
		}
		if len(p.Enum) > 0 && p.Type != "string" {
			return nil, ui.Invalid(at+"values", r.Texts.T("agents.tool.parameter.invalid.values"))
		}
		s.Properties[name] = p
		if r.Ticked(at + "required") {
			s.Required = append(s.Required, name)
		}
	}
	if len(s.Properties) == 0 {
		return nil, nil
	}
	slices.Sort(s.Required)
	return json.Marshal(s)
}

// headerFields never have the value of a stored header.
func headerFields(texts *ui.Texts, t apply.Tool) (all []ui.Field) {
	names := append(slices.Sorted(maps.Keys(t.Headers)), make([]string, emptyRows)...)
	for i, name := range names {
		at := fmt.Sprintf("header.%d.", i)
		value := ui.Field{Name: at + "value", Label: texts.T("agents.tool.header.value"), Kind: ui.Password, Optional: true, Complete: "off"}
		if name != "" {
			value.Placeholder = texts.T("agents.tool.header.value.placeholder")
		}
		all = append(all, ui.Field{
			Name: at + "name", Label: texts.T("agents.tool.header.name"), Value: name, Optional: true,
			Placeholder: "Authorization",
		}, value)
	}
	return all
}

// headerValues are the names of the fields with the values of headers.
func headerValues() (names []string) {
	for i := range maxRows {
		names = append(names, fmt.Sprintf("header.%d.value", i))
	}
	return names
}

// readHeaders reads the headers. An empty value stands for the stored one.
func readHeaders(r *ui.Request) (map[string]media.Secret, error) {
	var all map[string]media.Secret
	for i := range maxRows {
		at := fmt.Sprintf("header.%d.", i)
		name, value := r.Text(at+"name"), r.Text(at+"value")
		switch {
		case name == "" && value != "":
			return nil, ui.Invalid(at+"name", r.Texts.T("agents.tool.header.invalid.name"))
		case name == "":
			continue
		case value == "":
			value = apply.HiddenSecret
		}
		if all == nil {
			all = map[string]media.Secret{}
		}
		if _, twice := all[name]; twice {
			return nil, ui.Invalid(at+"name", r.Texts.T("agents.tool.header.invalid.twice"))
		}
		all[name] = media.Secret(value)
	}
	return all, nil
}

// readTool reads the form over a tool, whose other settings it keeps.
func readTool(r *ui.Request, t apply.Tool) (apply.Tool, error) {
	var err error
	t.Type, t.Description = r.Text("type"), r.Text("description")
	switch t.Type {
	case "transfer_call":
		t.Destinations = t.Destinations[:0:0]
		for line := range strings.SplitSeq(r.Raw("destinations"), "\n") {
			label, number, has := strings.Cut(line, "=")
			if !has {
				label, number = "", label
			}
			if number = strings.TrimSpace(number); number == "" {
				continue
			}
			t.Destinations = append(t.Destinations, apply.Destination{Label: strings.TrimSpace(label), Number: number})
		}
	case "http":
		t.Name, t.URL, t.Method, t.Filler, t.TimeoutS = r.Text("name"), r.Text("url"), r.Text("method"), r.Text("filler"), 0
		if s := r.Text("timeout_s"); s != "" {
			if t.TimeoutS, err = strconv.ParseFloat(s, 64); err != nil {
				return t, ui.Invalid("timeout_s", r.Texts.T("agents.tool.invalid.timeout_s"))
			}
		}
		if _, expressible := parameterRows(t.Parameters.RawMessage); expressible {
			if t.Parameters.RawMessage, err = readParameters(r); err != nil {
				return t, err
			}
		}
		if t.Headers, err = readHeaders(r); err != nil {
			return t, err
		}
	}
	return t, nil
}

func (Agents) changeTool(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		have, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(withSecrets(have)); err != nil {
			return operator.Entry{}, err
		}
		all := storedTools(have)
		n, err := numbered(r, len(all))
		switch {
		case err != nil:
			return operator.Entry{}, err
		case n >= 0 && r.Ticked("remove"):
			all = slices.Delete(all, n, n+1)
		case n >= 0:
			all[n], err = readTool(r, all[n])
		default:
			n = len(all)
			all = append(all, apply.Tool{})
			all[n], err = readTool(r, all[n])
		}
		if err != nil {
			return operator.Entry{}, err
		}
		a := apply.Agent{Name: have.Name, Tools: &all}
		if err = a.RestoreSecrets(have.Draft); err != nil {
			return operator.Entry{}, toolFault(err.Error())
		}
		e, err := save(r, q, &have, a)
		if invalid, ok := errors.AsType[*ui.InvalidError](err); ok {
			err = toolFault(invalid.Text())
		}
		return e, err
	})
	return ui.Result{To: "agents/" + r.ID(), Notice: r.Texts.T("agents.draft.notice")}, err
}

// toolPath matches the beginning of an error that names the tool.
var toolPath = regexp.MustCompile(`(?i)^tools?(\[\d+\])?[.:]? ?`)

// toolFault assigns an error of a tool to a field of the form.
func toolFault(text string) error {
	text = toolPath.ReplaceAllString(text, "")
	for _, field := range []string{"url", "name", "description", "timeout_s", "filler", "parameters", "headers", "destinations"} {
		at := regexp.MustCompile(`(^|: )` + field + `\b`).FindStringIndex(text)
		if at == nil {
			continue
		}
		switch field {
		case "parameters":
			field = "parameter.0.name"
		case "headers":
			field = "header.0.value"
		}
		return ui.Invalid(field, text)
	}
	return ui.Invalid("", text)
}
