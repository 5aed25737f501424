package access

import (
	"errors"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
)

// Values of the field sign_in.
const (
	withPassword = "password"
	withProvider = "provider"
)

// signInField asks how a new operator signs in.
func (p People) signInField(texts *ui.Texts) ui.Field {
	return ui.Field{
		Name: "sign_in", Label: texts.T("access.operators.new.sign_in.label"), Kind: ui.Select, Value: withProvider,
		Help: texts.T("access.operators.new.sign_in.help"),
		Options: []ui.Option{
			{Value: withProvider, Label: texts.T("access.operators.new.option.provider", "provider", p.Provider)},
			{Value: withPassword, Label: texts.T("access.operators.new.option.password")},
		},
	}
}

// askIdentity offers to release the account of an operator, or else to remove its password.
func (p People) askIdentity(r *ui.Request) (ui.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	page := ui.Page{Template: "form.html", Title: r.Texts.T("access.identity.title", "email", m.Email), Crumbs: aboveOperators(r.Texts)}
	form := ui.Form{Danger: true, Cancel: r.URL("operators"), Of: m.Person}
	switch {
	case m.Person != (operator.Person{}):
		form.Submit = r.Texts.T("access.identity.release.submit")
		page.Lead = r.Texts.T("access.identity.release.lead", "subject", m.Person.Subject, "issuer", m.Person.Issuer)
	case m.HasPassword && p.Provider != "":
		form.Submit = r.Texts.T("access.identity.password.submit")
		page.Lead = r.Texts.T("access.identity.password.lead", "provider", p.Provider)
	default:
		return ui.Page{}, errors.Join(err, ui.ErrNotFound)
	}
	page.Data = r.Form(form)
	return page, err
}

func (p People) setIdentity(r *ui.Request) (ui.Result, error) {
	notice := r.Texts.T("access.identity.release.notice")
	err := r.Commit(operator.Owner, func(q db.Querier) (e operator.Entry, fault error) {
		m, fault := operator.Find(r.Context(), q, r.Org(), r.ID())
		if fault == nil {
			fault = r.Same(m.Person)
		}
		if fault != nil {
			return e, fault
		}
		if m.Person != (operator.Person{}) {
			return operator.Release(r.Context(), q, r.Actor(), m)
		}
		if p.Provider == "" {
			return e, ui.ErrNotFound
		}
		notice = r.Texts.T("access.identity.password.notice")
		return operator.RemovePassword(r.Context(), q, r.Actor(), m)
	})
	return ui.Result{To: "operators", Notice: notice}, refusedForAccount(err)
}

// refusedForAccount shows on the form that the actor must not weaken the account.
func refusedForAccount(err error) error {
	for _, e := range []error{operator.ErrElsewhere, operator.ErrOwnCodes, operator.ErrOwnAccount} {
		if errors.Is(err, e) {
			return ui.Invalid("", err)
		}
	}
	return err
}
