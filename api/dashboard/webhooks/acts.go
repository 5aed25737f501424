package webhooks

import (
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/webhook"
)

func (w Webhooks) confirm(r *ui.Request, title, lead string, f ui.Form) (ui.Page, error) {
	e, err := w.find(r, r.DB())
	f.Cancel = r.URL("webhooks/" + e.ID)
	return ui.Page{Template: "form.html", Title: title, Lead: lead, Crumbs: crumbs(r.Texts, endpointLink(r, e)), Data: r.Form(f)}, err
}

func (w Webhooks) askRotate(r *ui.Request) (ui.Page, error) {
	return w.confirm(
		r,
		r.Texts.T("webhooks.secret.submit"),
		r.Texts.T("webhooks.secret.lead"),
		ui.Form{Submit: r.Texts.T("webhooks.secret.submit")},
	)
}

func (w Webhooks) rotate(r *ui.Request) (ui.Result, error) {
	made := webhook.NewSecret()
	var e webhook.EndpointView
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		var err error
		e, err = webhook.Rotate(r.Context(), q, r.Org(), r.ID(), made)
		return operator.Entry{Action: "webhook.secret", Object: r.ID()}, err
	})
	if err != nil {
		return ui.Result{}, err
	}
	return secret(r, r.Texts.T("webhooks.secret.done"), e, made), nil
}

func (w Webhooks) askDeleteOldSecret(r *ui.Request) (ui.Page, error) {
	return w.confirm(
		r,
		r.Texts.T("webhooks.delete_old_secret.submit"),
		r.Texts.T("webhooks.delete_old_secret.lead"),
		ui.Form{Submit: r.Texts.T("webhooks.delete_old_secret.submit"), Danger: true},
	)
}

func (w Webhooks) deleteOldSecret(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		_, err := webhook.Rotate(r.Context(), q, r.Org(), r.ID(), "")
		return operator.Entry{Action: "webhook.secret_settled", Object: r.ID()}, err
	})
	return ui.Result{To: "webhooks/" + r.ID(), Notice: r.Texts.T("webhooks.delete_old_secret.notice")}, err
}

func (w Webhooks) askDelete(r *ui.Request) (ui.Page, error) {
	return w.confirm(r, r.Texts.T("webhooks.delete.submit"), r.Texts.T("webhooks.delete.lead"),
		ui.Form{Submit: r.Texts.T("webhooks.delete.submit"), Danger: true})
}

func (w Webhooks) remove(r *ui.Request) (ui.Result, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		was, err := w.find(r, q)
		if err == nil {
			_, err = webhook.Remove(r.Context(), q, was.ID)
		}
		return operator.Entry{Action: "webhook.delete", Object: r.ID(), Before: auditView(was)}, err
	})
	return ui.Result{To: "webhooks", Notice: r.Texts.T("webhooks.delete.notice")}, err
}

// test sends an event of type test, outside the queue.
func (w Webhooks) test(r *ui.Request) (ui.Result, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return ui.Result{}, err
	}
	to := "webhooks/" + e.ID
	status, took, fault := (&webhook.Sender{Pool: w.DB.Pool, AllowInsecure: w.AllowInsecure}).Test(r.Context(), e.ID)
	if err = r.Log(operator.Entry{Action: "webhook.test", Object: e.ID, After: map[string]any{"status": status}}); err != nil {
		return ui.Result{}, err
	}
	switch {
	case fault != nil:
		_, why, _ := strings.Cut(fault.Error(), ": ")
		return ui.Result{To: to, Notice: r.Texts.Complete(r.Texts.T("webhooks.test.failed", "reason", why)), Failed: true}, nil
	case status < 200 || status > 299:
		return ui.Result{
			To:     to,
			Notice: r.Texts.T("webhooks.test.status", "status", status, "milliseconds", took.Milliseconds()),
			Failed: true,
		}, nil
	}
	return ui.Result{To: to, Notice: r.Texts.T("webhooks.test.delivered", "status", status, "milliseconds", took.Milliseconds())}, nil
}

func (w Webhooks) askReplay(r *ui.Request) (ui.Page, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return ui.Page{}, err
	}
	_, dead, err := webhook.CountUndelivered(r.Context(), r.DB(), e.ID)
	if err != nil {
		return ui.Page{}, err
	}
	lead := r.Texts.T("webhooks.replay.lead", "count", dead)
	if e.DisabledAt != nil {
		lead += " " + r.Texts.T("webhooks.replay.lead.enabled")
	}
	return w.confirm(r, r.Texts.T("webhooks.replay.title"), lead, ui.Form{Submit: r.Texts.T("webhooks.replay.submit")})
}

// replay sends failed deliveries again and enables the endpoint.
func (w Webhooks) replay(r *ui.Request) (ui.Result, error) {
	return w.replayDelivery(r, r.ID(), r.ID())
}

func (w Webhooks) replayOne(r *ui.Request) (ui.Result, error) {
	s, _, err := webhook.ReadDelivery(r.Context(), r.DB(), r.Org(), r.ID())
	if err != nil {
		return ui.Result{}, err
	}
	return w.replayDelivery(r, s.EndpointID, s.ID)
}

func (w Webhooks) replayDelivery(r *ui.Request, endpoint, id string) (ui.Result, error) {
	if _, err := webhook.Read(r.Context(), r.DB(), r.Org(), endpoint); err != nil {
		return ui.Result{}, err
	}
	n, err := webhook.Replay(r.Context(), w.DB.Pool, id, true)
	if err == nil {
		err = r.Log(operator.Entry{Action: "webhook.replay", Object: id, After: map[string]any{"notices": n}})
	}
	return ui.Result{To: "webhooks/" + endpoint, Notice: r.Texts.T("webhooks.replay.notice", "count", n)}, err
}

func (w Webhooks) delivery(r *ui.Request) (ui.Page, error) {
	s, body, err := webhook.ReadDelivery(r.Context(), r.DB(), r.Org(), r.ID())
	if err != nil {
		return ui.Page{}, err
	}
	e, err := webhook.Read(r.Context(), r.DB(), r.Org(), s.EndpointID)
	return ui.Page{
		Template: "delivery.html", Title: s.Type, Lead: s.ID, Crumbs: crumbs(r.Texts, endpointLink(r, e)),
		Data: map[string]any{"N": s, "Body": body},
	}, err
}
