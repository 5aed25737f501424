package ui

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

// CallbackPath is the path to which an identity provider returns the browser.
const CallbackPath = Home + "/sign-in/callback"

const (
	providerPath = Home + "/sign-in/provider"

	identityTimeout = 20 * time.Second // for all requests to the provider in one request
)

// startIdentity redirects to the identity provider. The browser keeps the flow, so that only this browser can end it.
func (f *Frame) startIdentity(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), identityTimeout)
	defer cancel()
	to, flow, err := f.Identity.Start(ctx, next(r.URL.Query().Get("next")))
	if err != nil {
		f.refuseIdentity(w, r, "", err)
		return
	}
	f.setCookie(w, f.cookie()+"-flow", flow, int((10 * time.Minute).Seconds()))
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // an address of the provider
}

// finishIdentity starts a session for the person whom the identity provider has verified.
func (f *Frame) finishIdentity(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), identityTimeout)
	defer cancel()
	kept := ""
	if c, err := r.Cookie(f.cookie() + "-flow"); err == nil {
		kept = c.Value
	}
	f.setCookie(w, f.cookie()+"-flow", "", -1)
	flow, err := f.Identity.Open(kept, r.URL.Query())
	if err != nil {
		f.refuseIdentity(w, r, "", err)
		return
	}
	succeeded, err := operator.CountIdentity(ctx, f.DB.Pool, flow.State, network(r))
	if err != nil {
		f.refuseIdentity(w, r, "", err)
		return
	}
	who, err := f.Identity.Finish(ctx, flow, r.URL.Query())
	if err != nil {
		f.refuseIdentity(w, r, who.Email, err)
		return
	}
	token, err := operator.SignInIdentity(ctx, f.DB.Pool, operator.IdentitySignIn{
		Person: who.Person, Email: who.Email, Address: address(r), Rules: f.Identity.Rules, Roles: who.Roles, Only: f.Identity.Only,
	})
	_, link := errors.AsType[*operator.PasswordRequiredError](err)
	if err == nil || link {
		if fault := succeeded(ctx); fault != nil {
			err, link = fault, false
		}
	}
	switch {
	case link:
		f.showSigning(w, r, http.StatusOK, signing{Email: who.Email, Next: flow.Next, Link: f.Identity.Link(who)})
		return
	case err != nil:
		f.refuseIdentity(w, r, who.Email, err)
		return
	}
	f.setSession(w, r, token)
	http.Redirect(w, r, next(flow.Next), http.StatusSeeOther)
}

// linkAccount connects the account of a session, which a password started, to the person of a link.
func linkAccount(f *Frame, r *http.Request, token media.Secret, text string) error {
	person, email, err := f.Identity.OpenLink(text)
	if err == nil {
		err = operator.Bind(r.Context(), f.DB.Pool, operator.Binding{Token: token, Person: person, Email: email, Address: address(r)})
	}
	if err != nil {
		return errors.Join(err, operator.SignOut(r.Context(), f.DB.Pool, token, address(r)))
	}
	return nil
}

// refuseIdentity shows the sign-in page with the reason. email is the verified address, or empty.
func (f *Frame) refuseIdentity(w http.ResponseWriter, r *http.Request, email string, err error) {
	status, text := http.StatusForbidden, f.Texts.T("ui.sign_in.provider.failed", "reason", err.Error())
	slow, many := errors.AsType[*operator.SlowDownError](err)
	_, refused := errors.AsType[*identity.RefusedError](err)
	switch {
	case many:
		status, text = http.StatusTooManyRequests, f.Texts.T("ui.problem.too_many_attempts", "span", wait(f.Texts, slow.For))
	case errors.Is(err, operator.ErrUnknown):
		text = f.Texts.T("ui.sign_in.provider.no_access")
	case errors.Is(err, operator.ErrOtherPerson):
		text = f.Texts.T("ui.sign_in.provider.other_person", "host", f.Identity.Host())
	case errors.Is(err, operator.ErrOtherAccount):
		text = f.Texts.T("ui.sign_in.provider.other_account", "host", f.Identity.Host())
	case !refused && !errors.Is(err, operator.ErrUsed):
		status, text = http.StatusServiceUnavailable, f.Texts.T("ui.sign_in.provider.no_answer", "host", f.Identity.Host())
	}
	logRefusal(f, r, email != "" && status != http.StatusServiceUnavailable, operator.Refusal{
		Email: email, Verified: email != "", Way: operator.ByProvider, Err: err,
	})
	f.showSigning(w, r, status, signing{Message: text})
}

// logRefusal writes a refused sign-in to the log of the process and, if audit is set, to the audit log. Faults of servers, and
// requests that anybody can send without a sign-in, are not in the audit log.
func logRefusal(f *Frame, r *http.Request, audit bool, refusal operator.Refusal) {
	refusal.Address, refusal.Root = address(r), f.Root
	f.Log.WarnContext(r.Context(), "sign-in rejected", "address", refusal.Address, "reason", refusal.Err.Error())
	if !audit {
		return
	}
	// A client that disconnects is logged, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), defaultTimeout)
	defer cancel()
	if err := operator.LogRefusal(ctx, f.DB.Pool, refusal); err != nil {
		f.Log.WarnContext(ctx, "failed to log a rejected sign-in", "error", err.Error())
	}
}
