package sip

import (
	"errors"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/timer"
)

// answered takes the first 2xx: it becomes the leg, or is hung up.
func (a *attempt) answered(res *sip.Response) (*leg.Leg, *media.DialError) {
	defer close(a.settled)
	d, err := dialog.FromResponse(a.invite, res)
	if err != nil {
		a.session.Close()
		return nil, failed(media.RouteError, err)
	}
	phone := a.phone(res)
	if phone != nil { // its requests go on being counted
		phone.dialog.Confirm(res)
		d = phone.dialog
	}
	a.mu.Lock()
	a.forks = map[dialog.Key]*dialog.Dialog{d.Key(): d}
	a.mu.Unlock()
	if a.gaveUp != "" {
		a.drop(d)
		return nil, failed(a.gaveUp, errors.New("answered after it was given up"))
	}
	agreed, err := a.agree(res, phone)
	if err != nil {
		a.session.Close()
		a.drop(d)
		return nil, failed(media.RouteError, err)
	}
	a.mu.Lock()
	told := a.told
	a.mu.Unlock()
	// The leg stands before the ACK leaves: a BYE may follow it at once.
	up, err := leg.Establish(a.ua.endpoint, leg.Answered{
		Dialog: d, Session: a.session, Agreement: agreed, Told: told, Wish: a.wish, Keys: a.target.Trunk.Keys, Allow: leg.Allowed(res),
		Term: timer.Answered(leg.Expires(res), a.least), Least: a.least, Sign: a.authenticate,
	}, a.ua.rules)
	if err != nil {
		a.drop(d)
		return nil, failed(media.Cancelled, err)
	}
	if err := a.ack(d); err != nil {
		_ = up.Hangup(media.Failure)
		return nil, failed(media.Failure, err)
	}
	return up, nil
}

// agree finds what the answer agreed on. An answer without a description
// stands by that of the same phone when it rang.
func (a *attempt) agree(res *sip.Response, phone *early) (sdp.Agreement, error) {
	theirs, there, err := leg.Description(res)
	switch {
	case err != nil:
		return sdp.Agreement{}, err
	case there:
		return leg.Agree(a.session, theirs, a.wish)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if phone != nil && phone.agreed == nil && len(a.early) == 2 {
		// Some answer under another tag than they rang under.
		for _, other := range a.early {
			if other.agreed != nil {
				phone = other
			}
		}
	}
	if phone == nil || phone.agreed == nil {
		return sdp.Agreement{}, errors.New("answer without a session description")
	}
	return *phone.agreed, nil
}

// again takes every further 2xx: the same again is acknowledged again, one of
// another phone is hung up (RFC 3261 section 13.2.2.4).
func (a *attempt) again(invite *sip.Request, res *sip.Response) {
	<-a.settled
	d, err := dialog.FromResponse(invite, res)
	if err != nil {
		return
	}
	a.mu.Lock()
	known, ok := a.forks[d.Key()]
	if !ok {
		a.forks[d.Key()] = d
	}
	a.mu.Unlock()
	if ok {
		_ = a.ack(known) // where it is lost, the answer comes once more
		return
	}
	a.drop(d)
}

func (a *attempt) ack(d *dialog.Dialog) error {
	ack := d.Ack(a.invite.CSeq().SeqNo)
	if a.toProxy(ack) {
		leg.Repay(ack, a.invite)
	}
	return leg.Ack(a.ua.endpoint, d, ack)
}

// drop hangs up a call that was answered and is not wanted.
func (a *attempt) drop(d *dialog.Dialog) {
	_ = a.ack(d) // where it is lost, the answer comes once more
	a.ua.endpoint.Go(func() { leg.Bye(a.ua.endpoint, d, a.authenticate) })
}
