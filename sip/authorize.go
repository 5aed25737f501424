package sip

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/proxy"
)

// errFinal is returned for a refusal that is not retried.
var errFinal = errors.New("refused")

// prepareRetry prepares another INVITE to the same target, or returns why there
// must be none.
func (a *attempt) prepareRetry(res *sip.Response) error {
	switch {
	case a.abandonCause != "":
		return errFinal
	case res.StatusCode == 401 || res.StatusCode == 407:
		return a.answerChallenge(res)
	case res.StatusCode == 422:
		return a.raiseSessionInterval(res)
	default:
		return errFinal
	}
}

// answerChallenge answers a challenge. Any callee can cause a challenge in order to guess our
// password offline. So only the realm of the trunk, at its own address, gets an answer, and
// only once. A phone that has rung is not rung again.
func (a *attempt) answerChallenge(res *sip.Response) error {
	from, err := netip.ParseAddrPort(res.Source())
	switch {
	case a.creds.Username == "":
		return errors.New("the carrier wants credentials; set username and password of the trunk")
	case err != nil || from.Addr().Unmap() != a.dest.Hop.Addr.Addr():
		return errors.New("challenge from an address other than the trunk's")
	case a.ladder.HasProgressed():
		return errors.New("challenge after ringing may have begun")
	}
	header := "WWW-Authenticate"
	if res.StatusCode == 407 {
		header = "Proxy-Authenticate"
	}
	c, err := auth.Pick(proxy.HeaderValues(res, header), a.checkChallenge)
	if err != nil {
		return err
	}
	if a.authCount > 0 && (!c.Stale || a.authCount > 1) {
		return errors.New("the trunk does not accept our credentials")
	}
	a.authCount++
	a.realm = c.Realm
	a.creds.SetChallenge(c, res.StatusCode == 407)
	return a.prepareResend(a.invite.Clone())
}

// checkChallenge returns an error for a challenge that must not be answered. A challenge
// without qop is answered only in the realm that the operator set: the response contains no
// value of ours, so a precomputed table could reveal the password.
func (a *attempt) checkChallenge(c auth.Challenge) error {
	if a.realm != "" && c.Realm != a.realm {
		return errors.New("challenge from a second realm")
	}
	if err := a.ua.proxies.CheckRealm(a.target.Trunk.Realm, a.dest.Proxy, c.Realm); err != nil {
		return err
	}
	if !c.QOP && a.target.Trunk.Realm == "" {
		return fmt.Errorf("challenge from realm %q without qop: to answer it, set the realm of the trunk", c.Realm)
	}
	return nil
}

// pinRealm stores the realm of the credentials that the trunk's proxy accepted. From then on the proxy must use this
// realm.
func (a *attempt) pinRealm(res *sip.Response) {
	if a.realm != "" && (a.ladder.HasProgressed() || res.IsSuccess()) {
		a.ua.proxies.PinRealm(a.dest.Proxy, a.realm)
	}
}

// raiseSessionInterval requests the longer interval of a 422 (RFC 4028 section
// 7.3).
func (a *attempt) raiseSessionInterval(res *sip.Response) error {
	h := res.GetHeader("Min-SE")
	if h == nil || a.ladder.HasProgressed() || a.count422 > 1 {
		return errFinal
	}
	least, err := dialog.ParseMinSE(h.Value())
	if err != nil {
		return err
	}
	a.count422++
	a.minSession = max(a.minSession, least)
	a.interval = max(a.interval, a.minSession)
	next := a.invite.Clone()
	setSessionExpires(next, a.interval, a.minSession)
	return a.prepareResend(next)
}

func (a *attempt) prepareResend(next *sip.Request) error {
	if err := a.addCredentials(next); err != nil {
		return err
	}
	next.CSeq().SeqNo++
	a.invite, a.gotResponse = next, false
	if err := a.fitTransport(); err != nil {
		return err
	}
	a.removeEarlyDialogs() // Via of the old transaction
	a.mu.Lock()
	a.earlyDialogs = nil
	a.mu.Unlock()
	return nil
}

func (u *UA) sessionInterval() time.Duration {
	if u.MinSession != 0 && u.MinSession < dialog.MinSessionInterval {
		return u.MinSession
	}
	return max(dialog.DefaultSessionInterval, u.MinSession)
}

func (u *UA) minSession() time.Duration {
	if u.MinSession != 0 {
		return u.MinSession
	}
	return dialog.MinSessionInterval
}

// addIdentity adds the Identity and Date headers if there is a signer.
func (u *UA) addIdentity(req *sip.Request, from, to string) error {
	if u.Signer == nil {
		return nil
	}
	now := time.Now()
	value, err := u.Signer.Sign(from, to, now)
	if err != nil || value == "" {
		return err
	}
	req.AppendHeader(sip.NewHeader("Date", now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))) // RFC 8224 section 4.1
	req.AppendHeader(sip.NewHeader("Identity", value))
	return nil
}
