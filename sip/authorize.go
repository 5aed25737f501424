package sip

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/guard"
)

// errNoChallenge is why a refusal is just that.
var errNoChallenge = errors.New("no challenge")

// authorize makes the INVITE ready to be sent again with credentials, or says
// why it must not. Any phone on the far side can have a challenge sent to us
// in order to have our password guessed offline; so only the trunk's realm is
// answered, at its own address, and once. A phone that has rung is not rung
// again.
func (a *attempt) authorize(res *sip.Response) error {
	ask, answer := "WWW-Authenticate", "Authorization"
	switch res.StatusCode {
	case 401:
	case 407:
		ask, answer = "Proxy-Authenticate", "Proxy-Authorization"
	default:
		return errNoChallenge
	}
	from, err := netip.ParseAddrPort(res.Source())
	switch {
	case a.gaveUp != "":
		return errNoChallenge
	case a.target.Trunk.Username == "":
		return errors.New("the trunk wants credentials and has none")
	case err != nil || from.Addr().Unmap() != a.at.Addr():
		return errors.New("challenge from another address than the trunk's")
	case a.rang:
		return errors.New("challenge after the phone rang")
	}
	c, err := a.challenge(res.GetHeaders(ask))
	if err != nil {
		return err
	}
	if a.auth > 0 && (!c.Stale || a.auth > 1) {
		return errors.New("the trunk does not accept our credentials")
	}
	if err = guard.Text("username", a.target.Trunk.Username); err != nil {
		return err
	}
	value, err := c.Answer(a.target.Trunk.Username, string(a.target.Trunk.Password), "INVITE", a.invite.Recipient.String())
	if err != nil {
		return err
	}
	a.auth++
	next := a.invite.Clone()
	next.RemoveHeader("Authorization")
	next.RemoveHeader("Proxy-Authorization")
	next.AppendHeader(sip.NewHeader(answer, value))
	next.CSeq().SeqNo++
	a.ua.endpoint.Sign(next)
	a.invite = next
	a.trying = false
	return nil
}

// challenge picks the strongest challenge of the trunk's realm.
func (a *attempt) challenge(headers []sip.Header) (best auth.Challenge, err error) {
	err = errors.New("challenge is missing")
	found := false
	for _, h := range headers {
		c, parseErr := auth.Parse(h.Value())
		if parseErr == nil {
			parseErr = guard.Text("challenge", h.Value())
		}
		switch {
		case parseErr != nil:
			err = fmt.Errorf("challenge: %w", parseErr)
		case !a.ours(c.Realm):
			err = errors.New("challenge of a foreign realm")
		case !found || c.Algorithm == "SHA-256":
			best, found = c, true
		}
	}
	if found {
		return best, nil
	}
	return best, err
}

// ours says whether a realm is the trunk's: the one set, or the first that its
// proxy has sent.
func (a *attempt) ours(realm string) bool {
	if want := a.target.Trunk.Realm; want != "" {
		return realm == want
	}
	a.ua.mu.Lock()
	defer a.ua.mu.Unlock()
	pinned, ok := a.ua.realms[a.target.Trunk.Proxy]
	if !ok {
		a.ua.realms[a.target.Trunk.Proxy] = realm
		return true
	}
	return realm == pinned
}
