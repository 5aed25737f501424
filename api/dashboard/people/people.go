// Package people shows who looks after an organization, what they changed, and to
// each their own account.
package people

import (
	"embed"
	"errors"
	"io/fs"
	"strconv"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/search"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

//go:embed pages/*.html
var files embed.FS

// People is the room of operators, their log and their accounts.
type People struct{}

// Room returns its pages.
func (p People) Room() (frame.Room, error) {
	pages, err := fs.Sub(files, "pages")
	return frame.Room{
		Name: "people", Files: pages,
		Links: []frame.Link{
			{Section: "Organization", Label: "Operators", Path: "operators", Needs: operator.Owner},
			{Section: "Organization", Label: "Audit log", Path: "audit", Needs: operator.Operator},
		},
		Routes: []frame.Route{
			{Path: "operators", Needs: operator.Owner, Look: p.list},
			{Path: "operators/new", Needs: operator.Owner, Look: p.ask, Change: p.create},
			{Path: "operators/{id}/role", Needs: operator.Owner, Look: p.askRole, Change: p.setRole},
			{Path: "operators/{id}/remove", Needs: operator.Owner, Look: p.askRemove, Change: p.remove},
			{Path: "account", Needs: operator.Viewer, Look: p.account, Change: p.setPassword, Anew: []string{"before", "password", "again"}},
			{Path: "audit", Needs: operator.Operator, Look: p.audit},
		},
	}, err
}

func (People) list(r *frame.Request) (frame.Page, error) {
	all, err := operator.Members(r.Context(), r.DB(), r.Org())
	all, looked := search.In(all, r.Query("q"), "address", func(m operator.Member) string { return m.Email })
	return frame.Page{
		Template: "list.html", Title: "Operators", Lead: "Who may sign in for this organization, and what they may do.",
		Actions: []frame.Link{{Label: "Add an operator", Path: "operators/new", Needs: operator.Owner}},
		Data:    map[string]any{"Members": all, "Me": r.Session.ID, "Search": looked},
	}, err
}

func above() []frame.Link { return []frame.Link{{Label: "Operators", Path: "operators"}} }

func roleField(value operator.Role) frame.Field {
	return frame.Field{
		Name: "role", Label: "Role", Kind: frame.Select, Value: string(value),
		Help: "A viewer looks. An operator also runs calls and campaigns, agents and trunks; an owner also keys, webhooks, settings and operators.",
		Options: []frame.Option{
			{Value: string(operator.Viewer), Label: "Viewer"},
			{Value: string(operator.Operator), Label: "Operator"},
			{Value: string(operator.Owner), Label: "Owner"},
		},
	}
}

func (People) ask(r *frame.Request) (frame.Page, error) {
	return frame.Page{Template: "form.html", Title: "Add an operator", Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Add the operator", Cancel: r.URL("operators"),
		Fields: []frame.Field{
			{Name: "email", Label: "Email", Kind: frame.Email, Help: "A new account gets a password, which is shown once: hand it over. Who has an account keeps their password."},
			roleField(operator.Operator),
		},
	})}, nil
}

func (People) create(r *frame.Request) (frame.Done, error) {
	email, err := operator.Address(r.Text("email"))
	if err != nil {
		return frame.Done{}, frame.Invalid("email", err)
	}
	role, err := operator.ParseRole(r.Text("role"))
	if err != nil {
		return frame.Done{}, frame.Invalid("role", err)
	}
	var password media.Secret
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		id, made, fault := operator.Create(r.Context(), q, operator.Newcomer{Email: email, OrgID: r.Org(), Role: role})
		password = made
		return operator.Entry{Action: "operator.create", Object: id, After: map[string]any{"email": email, "role": role}}, fault
	})
	switch {
	case errors.Is(err, operator.ErrMember):
		return frame.Done{}, frame.Invalid("email", err)
	case err != nil:
		return frame.Done{}, err
	case password == "":
		return frame.Done{To: "operators", Say: email + " was added, and signs in with the password of the account."}, nil
	}
	return frame.Done{Page: &frame.Page{Template: "added.html", Title: "The operator was added", Crumbs: above(), Data: map[string]any{"Email": email, "Password": string(password)}}}, nil
}

func (People) askRole(r *frame.Request) (frame.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	return frame.Page{Template: "form.html", Title: "Role of " + m.Email, Crumbs: above(), Data: r.Form(frame.Form{
		Submit: "Save", Cancel: r.URL("operators"), Fields: []frame.Field{roleField(m.Role)}, Of: m.Role,
	})}, err
}

func (People) setRole(r *frame.Request) (frame.Done, error) {
	role, err := operator.ParseRole(r.Text("role"))
	if err != nil {
		return frame.Done{}, frame.Invalid("role", err)
	}
	err = r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		m, fault := operator.Find(r.Context(), q, r.Org(), r.ID())
		if fault == nil {
			fault = r.Same(m.Role)
		}
		if fault != nil || m.Role == role {
			return operator.Entry{}, fault
		}
		e := operator.Entry{Action: "operator.role", Object: m.ID, Before: map[string]any{"email": m.Email, "role": m.Role}, After: map[string]any{"role": role}}
		return e, operator.SetRole(r.Context(), q, r.Org(), m.ID, role)
	})
	if errors.Is(err, operator.ErrLastOwner) {
		return frame.Done{}, frame.Invalid("role", err)
	}
	return frame.Done{To: back(r, role), Say: "The role counts from the next page on."}, err
}

// back is where who changed a role goes on: not to what they may see no more.
func back(r *frame.Request, role operator.Role) string {
	if r.ID() == r.Session.ID && !role.May(operator.Owner) {
		return "account"
	}
	return "operators"
}

func (People) askRemove(r *frame.Request) (frame.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	return frame.Page{
		Template: "form.html", Title: "Remove " + m.Email, Crumbs: above(),
		Lead: "They can do nothing more in this organization, from their next page on. What they did stays in the log.",
		Data: r.Form(frame.Form{Submit: "Remove the operator", Danger: true, Cancel: r.URL("operators")}),
	}, err
}

func (People) remove(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		m, fault := operator.Find(r.Context(), q, r.Org(), r.ID())
		if fault != nil {
			return operator.Entry{}, fault
		}
		e := operator.Entry{Action: "operator.delete", Object: m.ID, Before: map[string]any{"email": m.Email, "role": m.Role}}
		return e, operator.Remove(r.Context(), q, r.Org(), m.ID)
	})
	if errors.Is(err, operator.ErrLastOwner) {
		return frame.Done{}, frame.Invalid("", err)
	}
	if r.ID() == r.Session.ID {
		return frame.Done{To: frame.Home}, err
	}
	return frame.Done{To: "operators", Say: "The operator was removed."}, err
}

func (People) account(r *frame.Request) (frame.Page, error) {
	return frame.Page{Template: "account.html", Title: "Your account", Lead: r.Session.Email, Data: map[string]any{
		"Form": r.Form(frame.Form{Submit: "Change the password", Fields: []frame.Field{
			{Name: "email", Kind: frame.Hidden, Value: r.Session.Email, Complete: "username"},
			{Name: "before", Label: "Password now", Kind: frame.Password, Complete: "current-password"},
			{Name: "password", Label: "New password", Kind: frame.Password, Complete: "new-password", Help: "12 characters at least. Your other sessions end."},
			{Name: "again", Label: "New password again", Kind: frame.Password, Complete: "new-password"},
		}}),
	}}, nil
}

func (People) setPassword(r *frame.Request) (frame.Done, error) {
	password := media.Secret(r.Raw("password"))
	if err := operator.CheckPassword(password); err != nil {
		return frame.Done{}, frame.Invalid("password", err)
	}
	if r.Raw("again") != string(password) {
		return frame.Done{}, frame.Invalid("again", "This is not the same.")
	}
	err := r.Commit(operator.Viewer, func(q db.Querier) (operator.Entry, error) {
		return operator.Entry{Action: "operator.password", Object: r.Session.ID}, r.Session.SetPassword(r.Context(), q, media.Secret(r.Raw("before")), password)
	})
	if errors.Is(err, operator.ErrWrong) {
		return frame.Done{}, frame.Invalid("before", "This is not your password.")
	}
	return frame.Done{To: "account", Say: "The password is changed. Your other sessions ended."}, err
}

// perPage is how many entries a page has.
const perPage = 50

func (People) audit(r *frame.Request) (frame.Page, error) {
	before, err := strconv.ParseInt(r.Query("after"), 10, 64)
	if err != nil {
		before = 0 // the newest
	}
	action, who := r.Query("action"), r.Query("who")
	all, err := operator.Entries(r.Context(), r.DB(), r.Org(), action, who, before, perPage+1)
	if err != nil {
		return frame.Page{}, err
	}
	all, next := frame.Paged(r, all, perPage, func(l operator.Logged) string { return strconv.FormatInt(l.ID, 10) })
	return frame.Page{
		Template: "audit.html", Title: "Audit log", Lead: "Every change that was made here, by whom, and what it was before. Nothing of it can be changed.",
		Data: map[string]any{"Entries": all, "Next": next, "Action": action, "Who": who},
	}, nil
}
