package sip

import (
	"errors"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/leg"
)

// onAnswer handles the first 2xx: it starts the leg, or hangs up.
func (a *attempt) onAnswer(res *sip.Response) (*leg.Leg, *media.DialError) {
	defer close(a.settled)
	d, err := dialog.FromResponse(a.invite, res)
	if err != nil {
		a.session.Close()
		return nil, dialError(media.RouteError, err)
	}
	early := a.earlyDialog(res)
	if early != nil { // keep the CSeq of the requests that the early dialog has sent
		early.dialog.Confirm(res)
		d = early.dialog
	}
	a.mu.Lock()
	a.forks = map[dialog.Key]*dialog.Dialog{d.Key(): d}
	a.mu.Unlock()
	if a.abandonCause != "" {
		a.hangUp(d)
		return nil, dialError(a.abandonCause, errors.New("answered after the call was canceled"))
	}
	agreed, err := a.agree(res, early)
	if err != nil {
		a.session.Close()
		a.hangUp(d)
		return nil, dialError(media.RouteError, err)
	}
	a.mu.Lock()
	localSDP := a.localSDP
	a.mu.Unlock()
	// The leg exists before the ACK is sent, because a BYE may follow the ACK at once.
	l, err := leg.New(a.ua.endpoint, leg.Config{
		Dialog: d, Session: a.session, Agreement: agreed, LocalSDP: localSDP, Wish: a.wish, Keys: a.target.Trunk.Keys,
		Allow:    leg.AllowedMethods(res),
		Expected: a.expectedSources(res.Source()), FirstMedia: a.target.Trunk.FirstMedia, MediaGap: a.target.Trunk.MediaGap,
		Timer: dialog.ScheduleFromResponse(leg.SessionExpires(res), a.minSession), MinSession: a.minSession, Authorize: a.addCredentials,
	}, a.ua.legSettings)
	if err != nil {
		a.hangUp(d)
		return nil, dialError(media.Canceled, err)
	}
	if err := a.sendACK(d); err != nil {
		_ = l.Hangup(media.Failure)
		return nil, dialError(media.Failure, err)
	}
	return l, nil
}

// agree negotiates the session of a 2xx. If the 2xx has no description, that of
// an earlier provisional response of the same dialog applies.
func (a *attempt) agree(res *sip.Response, early *earlyDialog) (sdp.Agreement, error) {
	remote, found, err := leg.ReadSDP(res)
	switch {
	case err != nil:
		return sdp.Agreement{}, err
	case found:
		return leg.Agree(a.session, remote, a.wish, a.dest.Hop.Addr.Addr())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if early != nil && early.agreed == nil && len(a.earlyDialogs) == 2 {
		// Some carriers send one To tag in the provisional response and another in the 2xx.
		for _, other := range a.earlyDialogs {
			if other.agreed != nil {
				early = other
			}
		}
	}
	if early == nil || early.agreed == nil {
		return sdp.Agreement{}, errors.New("answer without a session description")
	}
	return *early.agreed, nil
}

// onRetransmission handles every later 2xx: it acknowledges a retransmission
// again and hangs up another fork (RFC 3261 section 13.2.2.4).
func (a *attempt) onRetransmission(invite *sip.Request, res *sip.Response) {
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
		_ = a.sendACK(known) // if the ACK is lost, the 2xx is retransmitted
		return
	}
	a.hangUp(d)
}

func (a *attempt) sendACK(d *dialog.Dialog) error {
	ack := d.Ack(a.invite.CSeq().SeqNo)
	if a.isToProxy(ack) {
		leg.CopyCredentials(ack, a.invite)
	}
	return leg.SendACK(a.ua.endpoint, d, ack)
}

// hangUp ends an answered call that is no longer wanted.
func (a *attempt) hangUp(d *dialog.Dialog) {
	_ = a.sendACK(d) // if the ACK is lost, the 2xx is retransmitted
	a.ua.endpoint.Go(func() { leg.SendBye(a.ua.endpoint, d, a.addCredentials) })
}
