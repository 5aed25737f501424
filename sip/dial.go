package sip

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/ladder"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
)

const (
	ringFor = 45 * time.Second // where the target does not say
	// grace is how long Dial waits for the carrier's word on a CANCEL. After
	// it the call is given up in the background.
	grace = 2 * time.Second
	// cancelFor is how long a cancelled call may go without a final answer
	// (RFC 3261 section 9.1).
	cancelFor = 32 * time.Second
	// silentFor is how long a carrier may take to say anything before the calls
	// that follow are sent elsewhere. This one goes on: it may ring.
	silentFor = 4 * time.Second
)

// Dial calls t and returns its leg once it has answered. Its error is always a
// *media.DialError.
//
// progress, which may be nil, is told media.Sent immediately before the first
// byte leaves, and media.Ringing when the phone first rings. It is called on
// the caller's goroutine. Where it was not told media.Sent, nothing has left.
//
// Where a carrier's proxy cannot take the call, the next one is asked: after a
// final 408 or 5xx before the phone rang, or where no connection could be
// made. An INVITE that was never answered is not sent elsewhere: it may have
// rung.
//
// Where ctx ends or nobody answers in time, the call is cancelled. Where it is
// answered all the same it is hung up, and was never answered as far as the
// caller of Dial can tell.
func (u *UA) Dial(ctx context.Context, t media.Target, progress func(media.Progress)) (media.Leg, error) {
	leg, err := u.dial(ctx, t, progress)
	if err != nil {
		return nil, err
	}
	return leg, nil
}

func (u *UA) dial(ctx context.Context, t media.Target, progress func(media.Progress)) (*leg.Leg, *media.DialError) {
	release, ok := u.endpoint.Hold()
	if !ok {
		return nil, failed(media.Cancelled, endpoint.ErrClosed)
	}
	defer release()
	ctx, leave := endpoint.Until(ctx, u.quit)
	defer leave()
	all, err := check(t)
	if err != nil {
		return nil, failed(media.RouteError, err)
	}
	if progress == nil {
		progress = func(media.Progress) {}
	}
	u.count(1)
	defer u.count(-1)
	d := u.dialling(t, progress)
	leg, failure := d.run(ctx, all)
	if failure != nil {
		failure.Ladder = d.ladder.Rungs()
		if !d.lingers {
			u.endpoint.Forget(d.callID)
		}
	}
	return leg, failure
}

func failed(c media.Cause, err error) *media.DialError {
	return &media.DialError{Cause: c, Err: err}
}

func (u *UA) count(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active += n
}

// A dialling is one call on its way to an answer, at whichever proxy. It
// belongs to the goroutine that dials.
type dialling struct {
	ua       *UA
	target   media.Target
	progress func(media.Progress)
	callID   string
	tag      string // of From
	cseq     uint32 // of the last INVITE
	ladder   *ladder.Ladder
	until    time.Time // the phone may ring; zero before the first INVITE
	lingers  bool      // somebody else forgets the ladder
}

func (u *UA) dialling(t media.Target, progress func(media.Progress)) *dialling {
	d := &dialling{
		ua: u, target: t, progress: progress, tag: sip.GenerateTagN(16),
		callID: t.ID + "@" + u.endpoint.Addr().Addr().String(),
	}
	d.ladder = u.endpoint.Follow(d.callID)
	return d
}

// run offers the call to one place after the other until one takes it, or it
// must not be offered elsewhere.
func (d *dialling) run(ctx context.Context, all []proxy.Proxy) (*leg.Leg, *media.DialError) {
	var last *media.DialError
	for at, err := range d.ua.proxies.Places(ctx, all) {
		switch {
		case ctx.Err() != nil:
			return nil, failed(media.Cancelled, ctx.Err())
		case errors.Is(err, proxy.ErrBarred):
			return nil, failed(media.Congestion, err)
		case err != nil:
			return nil, failed(media.RouteError, err)
		}
		a, err := d.attempt(at)
		if err != nil {
			return nil, failed(media.RouteError, err)
		}
		leg, failure := a.run(ctx)
		d.cseq = a.invite.CSeq().SeqNo
		if failure == nil || !a.elsewhere {
			return leg, failure
		}
		last = failure
	}
	return nil, last
}

// attempt prepares a call at one place, up to the INVITE.
func (d *dialling) attempt(at proxy.Place) (*attempt, error) {
	wish, err := sdp.Wished(d.target.Trunk)
	if err != nil {
		return nil, err
	}
	session, err := d.ua.Media.Listen()
	if err != nil {
		return nil, err
	}
	a := &attempt{
		dialling: d, at: at, creds: &auth.Credentials{Username: d.target.Trunk.Username, Password: d.target.Trunk.Password}, session: session, wish: wish, expires: d.ua.expires(), least: d.ua.least(),
		told:    sdp.Offer(session.Local(), sdp.Origin{ID: uint64(time.Now().UnixNano()), Version: 1}, wish),
		settled: make(chan struct{}),
	}
	a.invite, err = d.invite(at, a.told, a.expires, a.least)
	if err == nil {
		err = a.fit()
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return a, nil
}

// fit signs the INVITE, and sends one that is too long for UDP over TCP where
// the trunk leaves the choice (RFC 3261 section 18.1.1).
func (a *attempt) fit() error {
	e := a.ua.endpoint
	e.Sign(a.invite)
	if a.invite.Transport() != "UDP" || endpoint.Fits(a.invite) {
		return nil
	}
	if a.at.Proxy.Transport != "" {
		return fmt.Errorf("invite of %d bytes is too long for UDP, and the trunk wants no other transport", len(a.invite.String()))
	}
	a.grown = true
	a.over("TCP")
	return nil
}

// shrink goes back to UDP, where the place takes nothing over TCP.
func (a *attempt) shrink() {
	a.grown = false
	a.over("UDP")
}

func (a *attempt) over(transport string) {
	a.invite.SetTransport(transport)
	a.invite.RemoveHeader("Contact")
	a.ua.endpoint.Sign(a.invite)
}
