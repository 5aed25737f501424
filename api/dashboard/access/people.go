// Package access serves the pages of API keys, operators, the audit log and the own account.
package access

import (
	"embed"
	"errors"
	"io/fs"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

//go:embed pages
var files embed.FS

// People serves the pages of operators, audit log and account.
type People struct {
	// OnlyIdentity means that operators cannot sign in with a password.
	OnlyIdentity bool
	Provider     string // name of the identity provider; empty: none
}

// Module returns the pages.
func (p People) Module() (ui.Module, error) {
	pages, err := fs.Sub(files, "pages/operators")
	return ui.Module{
		Name: "people", Files: pages,
		Links: []ui.Link{
			{Section: "ui.menu.organization", Label: "ui.menu.operators", Path: "operators", Role: operator.Owner},
			{Section: "ui.menu.organization", Label: "ui.menu.audit_log", Path: "audit", Role: operator.Operator},
		},
		Routes: []ui.Route{
			{Path: "operators", Role: operator.Owner, Show: p.list},
			{Path: "operators/new", Role: operator.Owner, Show: p.ask, Submit: p.create},
			{Path: "operators/{id}/role", Role: operator.Owner, Show: p.askRole, Submit: p.setRole},
			{Path: "operators/{id}/remove", Role: operator.Owner, Show: p.askRemove, Submit: p.remove},
			{
				Path: "account", Role: operator.Viewer, Show: p.account, Submit: p.setPassword,
				NotRefilled: []string{"current_password", "password", "repeat_password"},
			},
			{Path: ui.CodesPath, Role: operator.Viewer, Show: p.showCodes, Submit: p.setCodes, NotRefilled: []string{"current_password", "code"}},
			{Path: "operators/{id}/codes", Role: operator.Owner, Show: p.askReset, Submit: p.resetCodes},
			{Path: "operators/{id}/identity", Role: operator.Owner, Show: p.askIdentity, Submit: p.setIdentity},
			{Path: "audit", Role: operator.Operator, Show: p.audit},
		},
	}, err
}

func (p People) list(r *ui.Request) (ui.Page, error) {
	all, err := operator.Members(r.Context(), r.DB(), r.Org())
	all, looked := ui.SearchIn(all, r.Query("q"), r.Texts.T("ui.search.address"), func(m operator.Member) string { return m.Email })
	return ui.Page{
		Template: "list.html", Title: r.Texts.T("access.operators.list.title"), Lead: r.Texts.T("access.operators.list.lead"),
		Actions: []ui.Link{{Label: r.Texts.T("access.link.add_operator"), Path: "operators/new", Role: operator.Owner}},
		Data:    map[string]any{"Members": all, "Me": r.Session.ID, "Search": looked, "Provider": p.Provider},
	}, err
}

func aboveOperators(texts *ui.Texts) []ui.Link {
	return []ui.Link{{Label: texts.T("access.link.operators"), Path: "operators"}}
}

func roleField(texts *ui.Texts, value operator.Role) ui.Field {
	return ui.Field{
		Name: "role", Label: texts.T("access.operators.role.label"), Kind: ui.Select, Value: string(value),
		Help: texts.T("access.operators.role.help"),
		Options: []ui.Option{
			{Value: string(operator.Viewer), Label: texts.T("access.operators.role.option.viewer")},
			{Value: string(operator.Operator), Label: texts.T("access.operators.role.option.operator")},
			{Value: string(operator.Owner), Label: texts.T("access.operators.role.option.owner")},
		},
	}
}

func (p People) ask(r *ui.Request) (ui.Page, error) {
	email := ui.Field{Name: "email", Label: r.Texts.T("access.operators.new.email.label"), Kind: ui.Email}
	fields := []ui.Field{email, roleField(r.Texts, operator.Operator)}
	switch {
	case p.OnlyIdentity:
	case p.Provider != "":
		fields = append(fields, p.signInField(r.Texts))
	default:
		fields[0].Help = r.Texts.T("access.operators.new.email.help")
	}
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("access.operators.new.submit"), Crumbs: aboveOperators(r.Texts),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("access.operators.new.submit"), Cancel: r.URL("operators"), Fields: fields,
		}),
	}, nil
}

func (p People) create(r *ui.Request) (ui.Result, error) {
	email, err := operator.Address(r.Text("email"))
	if err != nil {
		return ui.Result{}, ui.Invalid("email", err)
	}
	role, err := operator.ParseRole(r.Text("role"))
	if err != nil {
		return ui.Result{}, ui.Invalid("role", err)
	}
	provider := p.OnlyIdentity || p.Provider != "" && r.Text("sign_in") == withProvider
	var password media.Secret
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		id, made, fault := operator.Create(r.Context(), q, operator.NewMember{
			Email: email, OrgID: r.Org(), Role: role, NoPassword: provider, By: r.Actor(),
		})
		password = made
		return operator.Entry{Action: "operator.create", Object: id, After: map[string]any{"email": email, "role": role}}, fault
	})
	switch {
	case errors.Is(err, operator.ErrMember), errors.Is(err, operator.ErrHasPassword), errors.Is(err, operator.ErrElsewhere):
		return ui.Result{}, ui.Invalid("email", err)
	case err != nil:
		return ui.Result{}, err
	case provider:
		return ui.Result{To: "operators", Notice: r.Texts.T("access.operators.new.notice.provider", "email", email)}, nil
	case password == "":
		return ui.Result{To: "operators", Notice: r.Texts.T("access.operators.new.notice.password", "email", email)}, nil
	}
	return ui.Result{
		Page: &ui.Page{
			Template: "added.html", Title: r.Texts.T("access.operators.new.done"), Crumbs: aboveOperators(r.Texts),
			Data: map[string]any{"Email": email, "Password": string(password)},
		},
	}, nil
}

func (People) askRole(r *ui.Request) (ui.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	return ui.Page{
		Template: "form.html", Title: r.Texts.T("access.operators.role.title", "email", m.Email), Crumbs: aboveOperators(r.Texts),
		Data: r.Form(ui.Form{
			Submit: r.Texts.T("ui.form.save"), Cancel: r.URL("operators"), Fields: []ui.Field{roleField(r.Texts, m.Role)}, Of: m.Role,
		}),
	}, err
}

func (People) setRole(r *ui.Request) (ui.Result, error) {
	role, err := operator.ParseRole(r.Text("role"))
	if err != nil {
		return ui.Result{}, ui.Invalid("role", err)
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		m, fault := operator.Find(r.Context(), q, r.Org(), r.ID())
		if fault == nil {
			fault = r.Same(m.Role)
		}
		if fault != nil || m.Role == role {
			return operator.Entry{}, fault
		}
		e := operator.Entry{
			Action: "operator.role",
			Object: m.ID,
			Before: map[string]any{"email": m.Email, "role": m.Role},
			After:  map[string]any{"role": role},
		}
		return e, operator.SetRole(r.Context(), q, r.Org(), m.ID, role)
	})
	if errors.Is(err, operator.ErrLastOwner) {
		return ui.Result{}, ui.Invalid("role", err)
	}
	return ui.Result{To: back(r, role), Notice: r.Texts.T("access.operators.role.notice")}, err
}

// back avoids a redirect to a page that operators cannot see in their new role.
func back(r *ui.Request, role operator.Role) string {
	if r.ID() == r.Session.ID && !role.Includes(operator.Owner) {
		return "account"
	}
	return "operators"
}

func (People) askRemove(r *ui.Request) (ui.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("access.operators.remove.title", "email", m.Email), Crumbs: aboveOperators(r.Texts),
		Lead: r.Texts.T("access.operators.remove.lead"),
	}, r.Texts.T("access.operators.remove.submit"), "operators"), err
}

func (People) remove(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		m, fault := operator.Find(r.Context(), q, r.Org(), r.ID())
		if fault != nil {
			return operator.Entry{}, fault
		}
		e := operator.Entry{Action: "operator.delete", Object: m.ID, Before: map[string]any{"email": m.Email, "role": m.Role}}
		return e, operator.Remove(r.Context(), q, r.Org(), m.ID)
	})
	if errors.Is(err, operator.ErrLastOwner) {
		return ui.Result{}, ui.Invalid("", err)
	}
	if r.ID() == r.Session.ID {
		return ui.Result{To: ui.Home}, err
	}
	return ui.Result{To: "operators", Notice: r.Texts.T("access.operators.remove.notice")}, err
}

func (p People) account(r *ui.Request) (ui.Page, error) {
	left, err := r.Session.CodesLeft(r.Context(), r.DB())
	return ui.Page{Template: "account.html", Title: r.Texts.T("access.account.title"), Lead: r.Session.Email, Data: map[string]any{
		"Password": r.Session.HasPassword && !p.OnlyIdentity, "CodesLeft": left,
		"Form": r.Form(ui.Form{Submit: r.Texts.T("access.account.submit"), Fields: []ui.Field{
			{Name: "email", Kind: ui.Hidden, Value: r.Session.Email, Complete: "username"},
			{Name: "current_password", Label: r.Texts.T("access.account.current_password.label"), Kind: ui.Password, Complete: "current-password"},
			{
				Name: "password", Label: r.Texts.T("access.account.password.label"), Kind: ui.Password, Complete: "new-password",
				Help: r.Texts.T("access.account.password.help"),
			},
			{Name: "repeat_password", Label: r.Texts.T("access.account.repeat_password.label"), Kind: ui.Password, Complete: "new-password"},
		}}),
	}}, err
}

func (People) setPassword(r *ui.Request) (ui.Result, error) {
	password := media.Secret(r.Raw("password"))
	if err := operator.CheckPassword(password); err != nil {
		return ui.Result{}, ui.Invalid("password", err)
	}
	if r.Raw("repeat_password") != string(password) {
		return ui.Result{}, ui.Invalid("repeat_password", r.Texts.T("access.account.invalid.repeat_password"))
	}
	if err := prove(r); err != nil {
		return ui.Result{}, err
	}
	err := r.Commit(operator.Viewer, func(q db.Querier) (operator.Entry, error) {
		return operator.Entry{Action: "operator.password", Object: r.Session.ID}, r.Session.SetPassword(r.Context(), q, password)
	})
	return ui.Result{To: "account", Notice: r.Texts.T("access.account.notice")}, err
}

// perPage is the number of keys or log entries per page.
const perPage = 50

func (People) audit(r *ui.Request) (ui.Page, error) {
	before, err := strconv.ParseInt(r.Query("after"), 10, 64)
	if err != nil {
		before = 0 // the newest entry
	}
	action, who := r.Query("action"), r.Query("who")
	all, err := operator.Entries(r.Context(), r.DB(), r.Org(), action, who, before, perPage+1)
	if err != nil {
		return ui.Page{}, err
	}
	all, next := ui.Paginate(r, all, perPage, func(l operator.LogEntry) string { return strconv.FormatInt(l.ID, 10) })
	return ui.Page{
		Template: "audit.html", Title: r.Texts.T("access.audit.title"), Lead: r.Texts.T("access.audit.lead"),
		Data: map[string]any{"Entries": all, "Next": next, "Action": action, "Who": who},
	}, nil
}
