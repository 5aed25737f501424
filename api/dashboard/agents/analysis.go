package agents

import (
	"errors"
	"slices"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

func (Agents) askField(r *ui.Request) (ui.Page, error) {
	a, err := find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	all := a.Draft.Analysis.Fields
	n, err := numbered(r, len(all))
	if err != nil {
		return ui.Page{}, err
	}
	f, title := agents.Field{Type: "string"}, r.Texts.T("agents.field.title.new")
	if n >= 0 {
		f, title = all[n], r.Texts.T("agents.field.title")
	}
	form := []ui.Field{
		{
			Name: "name", Label: r.Texts.T("agents.field.name.label"), Value: f.Name, Placeholder: "callback_time",
			Help: r.Texts.T("agents.field.name.help"),
		},
		{Name: "type", Label: r.Texts.T("agents.field.type.label"), Kind: ui.Select, Options: ui.Options(agents.FieldTypes()...), Value: f.Type},
		{
			Name: "description", Label: r.Texts.T("agents.field.description.label"), Kind: ui.TextArea, Rows: 3, Value: f.Description,
			Optional: true,
			Help:     r.Texts.T("agents.field.description.help"),
		},
		{
			Name: "values", Label: r.Texts.T("agents.field.values.label"), Kind: ui.TextArea, Rows: 4, Value: strings.Join(f.Values, "\n"),
			Optional: true,
			Help:     r.Texts.T("agents.field.values.help"),
		},
	}
	if n >= 0 {
		form = append(form, ui.CheckboxField("remove", r.Texts.T("agents.field.remove.label"), false))
	}
	return ui.Page{
		Template: "form.html", Title: title, Crumbs: crumbs(r.Texts, agentLink(a)),
		Lead: r.Texts.T("agents.field.lead"),
		Data: r.Form(ui.Form{Submit: r.Texts.T("agents.draft.submit"), Cancel: r.URL("agents/" + a.ID), Of: withSecrets(a), Fields: form}),
	}, nil
}

func (Agents) changeField(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Operator, func(q db.Querier) (operator.Entry, error) {
		have, err := find(r, q)
		if err != nil {
			return operator.Entry{}, err
		}
		if err = r.Same(withSecrets(have)); err != nil {
			return operator.Entry{}, err
		}
		all := slices.Clone(have.Draft.Analysis.Fields)
		n, err := numbered(r, len(all))
		if err != nil {
			return operator.Entry{}, err
		}
		f := agents.Field{Name: r.Text("name"), Type: r.Text("type"), Description: r.Text("description")}
		for line := range strings.SplitSeq(r.Raw("values"), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				f.Values = append(f.Values, line)
			}
		}
		switch {
		case n >= 0 && r.Ticked("remove"):
			all = slices.Delete(all, n, n+1)
		case n >= 0:
			all[n] = f
		default:
			all = append(all, f)
		}
		e, err := save(r, q, &have, apply.Agent{Name: have.Name, Analysis: &apply.Analysis{Fields: &all}})
		if invalid, ok := errors.AsType[*ui.InvalidError](err); ok {
			err = fieldFault(invalid.Text())
		}
		return e, err
	})
	return ui.Result{To: "agents/" + r.ID(), Notice: r.Texts.T("agents.draft.notice")}, err
}

// fieldFault assigns an error of an analysis field to a field of the form.
func fieldFault(text string) error {
	_, rest, _ := strings.Cut(text, "].")
	for _, field := range []string{"name", "type", "values", "description"} {
		if strings.HasPrefix(rest, field) {
			return ui.Invalid(field, rest)
		}
	}
	return ui.Invalid("", text)
}
