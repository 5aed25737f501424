package sip

import (
	"errors"
	"net/netip"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/proxy"
	"github.com/parley-voice/parley/sip/timer"
)

// errFinal is why a refusal is just that.
var errFinal = errors.New("refused")

// retry makes the INVITE ready to be sent to the same place again, or says why
// it must not.
func (a *attempt) retry(res *sip.Response) error {
	switch {
	case a.gaveUp != "":
		return errFinal
	case res.StatusCode == 401 || res.StatusCode == 407:
		return a.authorize(res)
	case res.StatusCode == 422:
		return a.lengthen(res)
	default:
		return errFinal
	}
}

// authorize answers a challenge. Any phone on the far side can have one sent
// to us in order to have our password guessed offline; so only the trunk's
// realm is answered, at its own address, and once. A phone that has rung is
// not rung again.
func (a *attempt) authorize(res *sip.Response) error {
	from, err := netip.ParseAddrPort(res.Source())
	switch {
	case a.creds.Username == "":
		return errors.New("the trunk wants credentials and has none")
	case err != nil || from.Addr().Unmap() != a.at.Hop.Addr.Addr():
		return errors.New("challenge from another address than the trunk's")
	case a.ladder.Moved():
		return errors.New("challenge after the phone may have rung")
	}
	ask := "WWW-Authenticate"
	if res.StatusCode == 407 {
		ask = "Proxy-Authenticate"
	}
	c, err := auth.Pick(proxy.Values(res, ask), func(realm string) bool {
		return (a.realm == "" || realm == a.realm) && a.ua.proxies.Ours(a.target.Trunk.Realm, a.at.Proxy, realm)
	})
	if err != nil {
		return err
	}
	if a.auth > 0 && (!c.Stale || a.auth > 1) {
		return errors.New("the trunk does not accept our credentials")
	}
	a.auth++
	a.realm = c.Realm
	a.creds.Accept(c, res.StatusCode == 407)
	return a.resend(a.invite.Clone())
}

// pin holds the trunk's proxy to the realm that it was sent credentials for,
// once they have taken the call further.
func (a *attempt) pin(res *sip.Response) {
	if a.realm != "" && a.target.Trunk.Realm == "" && (a.ladder.Moved() || res.IsSuccess()) {
		a.ua.proxies.Pin(a.at.Proxy, a.realm)
	}
}

// lengthen asks for a longer session, as a 422 wants it (RFC 4028 section 7.3).
func (a *attempt) lengthen(res *sip.Response) error {
	h := res.GetHeader("Min-SE")
	if h == nil || a.ladder.Moved() || a.tooSmall > 1 {
		return errFinal
	}
	least, err := timer.ParseLeast(h.Value())
	if err != nil {
		return err
	}
	a.tooSmall++
	a.least = max(a.least, least)
	a.expires = max(a.expires, a.least)
	next := a.invite.Clone()
	setExpires(next, a.expires, a.least)
	return a.resend(next)
}

// resend makes next the INVITE of another transaction.
func (a *attempt) resend(next *sip.Request) error {
	if err := a.authenticate(next); err != nil {
		return err
	}
	next.CSeq().SeqNo++
	a.invite, a.trying = next, false
	if err := a.fit(); err != nil {
		return err
	}
	a.forget() // what rang under the old one
	a.mu.Lock()
	a.early = nil
	a.mu.Unlock()
	return nil
}

// expires is the session interval to ask for.
func (u *UA) expires() time.Duration {
	if u.LeastSession != 0 && u.LeastSession < timer.Least {
		return u.LeastSession
	}
	return max(timer.Default, u.LeastSession)
}

// least is the shortest session interval that is taken.
func (u *UA) least() time.Duration {
	if u.LeastSession != 0 {
		return u.LeastSession
	}
	return timer.Least
}

// identity vouches for the caller number, where there is a signer.
func (u *UA) identity(req *sip.Request, from, to string) error {
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
