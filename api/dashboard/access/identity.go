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
func (p People) signInField() ui.Field {
	return ui.Field{
		Name: "sign_in", Label: "Sign-in", Kind: ui.Select, Value: withProvider,
		Help: "A new account with a password gets a generated one, shown once. Existing accounts keep their password.",
		Options: []ui.Option{
			{Value: withProvider, Label: "With " + p.Provider},
			{Value: withPassword, Label: "With a password"},
		},
	}
}

// askIdentity offers to release the account of an operator, or else to remove its password.
func (p People) askIdentity(r *ui.Request) (ui.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	page := ui.Page{Template: "form.html", Title: "Identity of " + m.Email, Crumbs: aboveOperators()}
	form := ui.Form{Danger: true, Cancel: r.URL("operators"), Of: m.Person}
	switch {
	case m.Person != (operator.Person{}):
		form.Submit = "Release account"
		page.Lead = "The account belongs to the person " + m.Person.Subject + " at " + m.Person.Issuer + ". After a release, that person is " +
			"signed out. The account then belongs to the next person who signs in there with this email address."
	case m.HasPassword && p.Provider != "":
		form.Submit = "Remove password"
		page.Lead = "The operator then signs in with " + p.Provider + " only. One-time codes are removed, and the operator is signed out."
	default:
		return ui.Page{}, errors.Join(err, ui.ErrNotFound)
	}
	page.Data = r.Form(form)
	return page, err
}

func (p People) setIdentity(r *ui.Request) (ui.Result, error) {
	notice := "Account released."
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
		notice = "Password removed."
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
