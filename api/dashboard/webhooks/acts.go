package webhooks

import (
	"fmt"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/webhook"
)

// confirm asks before something is done to an endpoint.
func (w Webhooks) confirm(r *frame.Request, title, lead string, f frame.Form) (frame.Page, error) {
	e, err := w.find(r, r.DB())
	f.Cancel = r.URL("webhooks/" + e.ID)
	return frame.Page{Template: "form.html", Title: title, Lead: lead, Crumbs: above(of(r, e)), Data: r.Form(f)}, err
}

func (w Webhooks) askRotate(r *frame.Request) (frame.Page, error) {
	return w.confirm(r, "A new secret", "Notices are signed by both secrets from now on, until the one before is settled: receivers can change in between, and lose none.",
		frame.Form{Submit: "Make a new secret"})
}

func (w Webhooks) rotate(r *frame.Request) (frame.Done, error) {
	made := webhook.NewSecret()
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		_, err := webhook.Rotate(r.Context(), q, r.Org(), r.ID(), made)
		return operator.Entry{Action: "webhook.secret", Object: r.ID()}, err
	})
	if err != nil {
		return frame.Done{}, err
	}
	return secret("The new secret", made), nil
}

func (w Webhooks) askSettle(r *frame.Request) (frame.Page, error) {
	return w.confirm(r, "Forget the old secret", "Notices are signed by the new secret alone from now on. Receivers that know the old one alone refuse them.",
		frame.Form{Submit: "Forget the old secret", Danger: true})
}

func (w Webhooks) settle(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		_, err := webhook.Rotate(r.Context(), q, r.Org(), r.ID(), "")
		return operator.Entry{Action: "webhook.secret_settled", Object: r.ID()}, err
	})
	return frame.Done{To: "webhooks/" + r.ID(), Say: "The old secret is forgotten."}, err
}

func (w Webhooks) askDelete(r *frame.Request) (frame.Page, error) {
	return w.confirm(r, "Delete the endpoint", "What is on its way to it, and what is known of what it was sent, goes with it.",
		frame.Form{Submit: "Delete the endpoint", Danger: true})
}

func (w Webhooks) remove(r *frame.Request) (frame.Done, error) {
	err := r.Commit(operator.Owner, func(q db.Querier) (operator.Entry, error) {
		was, err := w.find(r, q)
		if err == nil {
			_, err = webhook.Remove(r.Context(), q, was.ID)
		}
		return operator.Entry{Action: "webhook.delete", Object: r.ID(), Before: logged(was)}, err
	})
	return frame.Done{To: "webhooks", Say: "The endpoint is deleted."}, err
}

// test sends a notice of type test, outside the queue.
func (w Webhooks) test(r *frame.Request) (frame.Done, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return frame.Done{}, err
	}
	to := "webhooks/" + e.ID
	status, took, fault := (&webhook.Sender{Pool: w.DB.Pool, AllowInsecure: w.AllowInsecure}).Test(r.Context(), e.ID)
	if err = r.Log(operator.Entry{Action: "webhook.test", Object: e.ID, After: map[string]any{"status": status}}); err != nil {
		return frame.Done{}, err
	}
	switch {
	case fault != nil:
		_, why, _ := strings.Cut(fault.Error(), ": ")
		return frame.Done{To: to, Say: "The test did not reach it: " + why, Wrong: true}, nil
	case status < 200 || status > 299:
		return frame.Done{To: to, Say: fmt.Sprintf("It answered the test with %d after %d ms; it is to answer 2xx.", status, took.Milliseconds()), Wrong: true}, nil
	}
	return frame.Done{To: to, Say: fmt.Sprintf("It took the test: %d after %d ms.", status, took.Milliseconds())}, nil
}

func (w Webhooks) askReplay(r *frame.Request) (frame.Page, error) {
	e, err := w.find(r, r.DB())
	if err != nil {
		return frame.Page{}, err
	}
	_, dead, err := webhook.Left(r.Context(), r.DB(), e.ID)
	if err != nil {
		return frame.Page{}, err
	}
	lead := frame.Plural(dead, "notice was", "notices were") + " given up. What was given up is sent again at once, under the id it had, with the whole schedule of retries before it."
	if e.DisabledAt != nil {
		lead += " The endpoint works again."
	}
	return w.confirm(r, "Send again what was given up", lead, frame.Form{Submit: "Send again"})
}

// replay sends again what was given up, and enables the endpoint.
func (w Webhooks) replay(r *frame.Request) (frame.Done, error) {
	return w.again(r, r.ID(), r.ID())
}

func (w Webhooks) replayOne(r *frame.Request) (frame.Done, error) {
	s, _, err := webhook.ReadNotice(r.Context(), r.DB(), r.Org(), r.ID())
	if err != nil {
		return frame.Done{}, err
	}
	return w.again(r, s.EndpointID, s.ID)
}

func (w Webhooks) again(r *frame.Request, endpoint, id string) (frame.Done, error) {
	if _, err := webhook.Read(r.Context(), r.DB(), r.Org(), endpoint); err != nil {
		return frame.Done{}, err
	}
	n, err := webhook.Replay(r.Context(), w.DB.Pool, id, true)
	if err == nil {
		err = r.Log(operator.Entry{Action: "webhook.replay", Object: id, After: map[string]any{"notices": n}})
	}
	return frame.Done{To: "webhooks/" + endpoint, Say: fmt.Sprintf("%d to be sent again.", n)}, err
}

func (w Webhooks) notice(r *frame.Request) (frame.Page, error) {
	s, body, err := webhook.ReadNotice(r.Context(), r.DB(), r.Org(), r.ID())
	if err != nil {
		return frame.Page{}, err
	}
	e, err := webhook.Read(r.Context(), r.DB(), r.Org(), s.EndpointID)
	return frame.Page{
		Template: "notice.html", Title: s.Type, Lead: s.ID, Crumbs: above(of(r, e)),
		Data: map[string]any{"N": s, "Body": body},
	}, err
}
