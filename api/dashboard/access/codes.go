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
	page := ui.Page{
		Template: "codes.html", Title: r.Texts.T("access.codes.title"),
		Crumbs: []ui.Link{{Label: r.Texts.T("access.link.your_account"), Path: "account"}},
	}
	current := ui.Field{
		Name: "current_password", Label: r.Texts.T("access.codes.current_password.label"), Kind: ui.Password, Complete: "current-password",
	}
	digits := ui.Field{Name: "code", Label: r.Texts.T("access.codes.code.label"), Complete: "one-time-code", Code: true}
	if r.Session.HasCodes {
		digits.Help = r.Texts.T("access.codes.code.help.off")
		page.Lead = r.Texts.T("access.codes.lead.off")
		page.Data = map[string]any{"Form": r.Form(ui.Form{
			Submit: r.Texts.T("access.codes.submit.off"), Danger: true, Cancel: r.URL("account"), Fields: []ui.Field{current, digits},
		})}
		return page, nil
	}
	page.Lead = r.Texts.T("access.codes.lead.on")
	digits.Help = r.Texts.T("access.codes.code.help.on")
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
		"Form": r.Form(ui.Form{Submit: r.Texts.T("access.codes.submit.on"), Cancel: r.URL("account"), Fields: []ui.Field{
			{Name: "key", Kind: ui.Hidden, Value: string(key)}, digits, current,
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
		return ui.Result{}, ui.Invalid("code", r.Texts.T("access.codes.invalid.code"))
	case errors.Is(err, operator.ErrHasCodes):
		return ui.Result{}, ui.Invalid("", err)
	case err != nil:
		return ui.Result{}, err
	}
	return ui.Result{Page: &ui.Page{
		Template: "recovery.html", Title: r.Texts.T("access.codes.turned_on.title"), Data: recovery,
		Lead: r.Texts.T("access.codes.turned_on.lead"),
	}}, nil
}

func (People) disableCodes(r *ui.Request) (ui.Result, error) {
	err := r.ProveCode(r.Text("code"))
	if slow, many := errors.AsType[*operator.SlowDownError](err); many {
		return ui.Result{}, ui.TooManyAttempts(r.Texts, "code", slow)
	}
	if errors.Is(err, operator.ErrBadCode) {
		return ui.Result{}, ui.Invalid("code", r.Texts.T("access.codes.invalid.used"))
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
	return ui.Result{To: "account", Notice: r.Texts.T("access.codes.turned_off")}, err
}

// prove checks the current password of a form.
func prove(r *ui.Request) error {
	err := r.Prove(media.Secret(r.Raw("current_password")))
	if slow, many := errors.AsType[*operator.SlowDownError](err); many {
		return ui.TooManyAttempts(r.Texts, "current_password", slow)
	}
	if errors.Is(err, operator.ErrBadCredentials) {
		return ui.Invalid("current_password", r.Texts.T("access.account.invalid.current_password"))
	}
	return err
}

func (People) askReset(r *ui.Request) (ui.Page, error) {
	m, err := operator.Find(r.Context(), r.DB(), r.Org(), r.ID())
	return ui.Confirm(r, ui.Page{
		Title: r.Texts.T("access.codes.reset.title", "email", m.Email), Crumbs: aboveOperators(r.Texts),
		Lead: r.Texts.T("access.codes.reset.lead"),
	}, r.Texts.T("access.codes.reset.submit"), "operators"), err
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
	return ui.Result{To: "operators", Notice: r.Texts.T("access.codes.reset.notice")}, refusedForAccount(err)
}
