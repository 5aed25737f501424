package access

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"time"

	"rsc.io/qr"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// showCodes shows the form that turns one-time codes on, or off if they are on. The browser keeps the new key until a code
// proves that the app has it.
func (People) showCodes(r *ui.Request) (ui.Page, error) {
	page := ui.Page{Template: "codes.html", Title: "One-time codes", Crumbs: []ui.Link{{Label: "Your account", Path: "account"}}}
	before := ui.Field{Name: "before", Label: "Password", Kind: ui.Password, Complete: "current-password"}
	digits := ui.Field{Name: "code", Label: "Code", Complete: "one-time-code", Code: true}
	if r.Session.HasCodes {
		digits.Help = "From your authenticator app, or a recovery code."
		page.Lead = "Signing in takes your password and a code of your authenticator app."
		page.Data = map[string]any{"Form": r.Form(ui.Form{
			Submit: "Turn off codes", Danger: true, Cancel: r.URL("account"), Fields: []ui.Field{before, digits},
		})}
		return page, nil
	}
	page.Lead = "Protect your account with an authenticator app. Signing in then takes your password and a code of the app."
	digits.Help = "6 digits, from the app."
	key := media.Secret(r.Text("key"))
	if _, err := operator.CurrentCode(key, time.Now()); err != nil {
		key = operator.NewCodeKey()
	}
	code, err := qr.Encode(operator.CodeAddress(r.Service(), r.Session.Email, key), qr.M)
	if err != nil {
		return page, fmt.Errorf("one-time codes: %w", err)
	}
	page.Data = map[string]any{
		"QR":  template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(code.PNG())), //nolint:gosec // an image
		"Key": string(key),
		"Form": r.Form(ui.Form{Submit: "Turn on codes", Cancel: r.URL("account"), Fields: []ui.Field{
			{Name: "key", Kind: ui.Hidden, Value: string(key)}, digits, before,
		}}),
	}
	return page, nil
}

func (p People) setCodes(r *ui.Request) (ui.Result, error) {
	if err := prove(r); err != nil {
		return ui.Result{}, err
	}
	if r.Session.HasCodes {
		return p.disableCodes(r)
	}
	var recovery []string
	err := r.Commit(operator.Viewer, func(q db.Querier) (operator.Entry, error) {
		var fault error
		recovery, fault = r.Session.EnableCodes(r.Context(), q, media.Secret(r.Text("key")), r.Text("code"))
		return operator.Entry{Action: "operator.codes", Object: r.Session.ID, After: map[string]any{"on": true}}, fault
	})
	switch {
	case errors.Is(err, operator.ErrBadCode):
		return ui.Result{}, ui.Invalid("code", "Wrong code. Enter the code that the app shows now, and check the clock of its device.")
	case errors.Is(err, operator.ErrHasCodes):
		return ui.Result{}, ui.Invalid("", err)
	case err != nil:
		return ui.Result{}, err
	}
	return ui.Result{Page: &ui.Page{
		Template: "recovery.html", Title: "One-time codes are on", Data: recovery,
		Lead: "Your other sessions were signed out.",
	}}, nil
}

func (People) disableCodes(r *ui.Request) (ui.Result, error) {
	err := r.ProveCode(r.Text("code"))
	if slow, many := errors.AsType[*operator.SlowDownError](err); many {
		return ui.Result{}, ui.TooManyAttempts(r.Words, "code", slow)
	}
	if errors.Is(err, operator.ErrBadCode) {
		return ui.Result{}, ui.Invalid("code", "Wrong or used code. Wait for the next code of the app.")
	}
	if err != nil {
		return ui.Result{}, err
	}
	err = r.Commit(operator.Viewer, func(q db.Querier) (operator.Entry, error) {
		e := operator.Entry{
			Action: "operator.codes", Object: r.Session.ID, Before: map[string]any{"on": true}, After: map[string]any{"on": false},
		}
		return e, operator.DisableCodes(r.Context(), q, r.Session.ID)
	})
	return ui.Result{To: "account", Notice: "One-time codes are off."}, err
}

// prove checks the current password of a form.
func prove(r *ui.Request) error {
	err := r.Prove(media.Secret(r.Raw("before")))
	if slow, many := errors.AsType[*operator.SlowDownError](err); many {
		return ui.TooManyAttempts(r.Words, "before", slow)
	}
	if errors.Is(err, operator.ErrBadCredentials) {
		return ui.Invalid("before", "Wrong password.")
	}
	return err
}

func (People) askReset(r *ui.Request) (ui.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	return ui.Confirm(r, ui.Page{
		Title: "Reset codes of " + m.Email, Crumbs: aboveOperators(),
		Lead: "For an operator who lost the authenticator app and the recovery codes. They are signed out and need only their password then.",
	}, "Reset codes", "operators"), err
}

func (People) resetCodes(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		m, fault := operator.Find(r.Context(), q, r.Org(), r.ID())
		if fault != nil || !m.HasCodes {
			return operator.Entry{}, fault
		}
		e := operator.Entry{
			Action: "operator.codes", Object: m.ID,
			Before: map[string]any{"email": m.Email, "on": true}, After: map[string]any{"on": false},
		}
		return e, operator.ResetCodes(r.Context(), q, r.Actor(), m.ID)
	})
	return ui.Result{To: "operators", Notice: "Codes reset."}, refusedForAccount(err)
}
