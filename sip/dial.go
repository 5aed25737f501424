package sip

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/endpoint"
)

const (
	ringFor = 45 * time.Second // where the target does not say
	// grace is how long Dial waits for the carrier's word on a CANCEL. After
	// it the call is given up in the background.
	grace = 2 * time.Second
	// cancelFor is how long a cancelled call may go without a final answer
	// (RFC 3261 section 9.1).
	cancelFor = 32 * time.Second
)

// Dial calls t and returns its leg once it has answered. Its error is always a
// *media.DialError.
//
// progress, which may be nil, is told media.Sent immediately before the first
// byte leaves, and media.Ringing when the phone first rings. It is called on
// the caller's goroutine. Where it was not told media.Sent, nothing has left.
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

func (u *UA) dial(ctx context.Context, t media.Target, progress func(media.Progress)) (*endpoint.Leg, *media.DialError) {
	release, ok := u.endpoint.Hold()
	if !ok {
		return nil, failed(media.Cancelled, endpoint.ErrClosed)
	}
	defer release()
	ctx, leave := endpoint.Until(ctx, u.quit)
	defer leave()
	p, err := check(t)
	if err != nil {
		return nil, failed(media.RouteError, err)
	}
	at, err := p.resolve(ctx, u.Resolver)
	if err != nil && ctx.Err() == nil {
		return nil, failed(media.RouteError, err)
	}
	if ctx.Err() != nil {
		return nil, failed(media.Cancelled, ctx.Err())
	}
	a, err := u.attempt(t, p, at)
	if err != nil {
		return nil, failed(media.RouteError, err)
	}
	if progress == nil {
		progress = func(media.Progress) {}
	}
	u.count(1)
	defer u.count(-1)
	return a.run(ctx, progress)
}

func failed(c media.Cause, err error) *media.DialError {
	return &media.DialError{Cause: c, Err: err}
}

func (u *UA) count(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active += n
}

// attempt prepares one call, up to the INVITE.
func (u *UA) attempt(t media.Target, p proxy, at netip.AddrPort) (*attempt, error) {
	wish, err := sdp.Wished(t.Trunk)
	if err != nil {
		return nil, err
	}
	session, err := u.Media.Listen()
	if err != nil {
		return nil, err
	}
	a := &attempt{
		ua: u, target: t, at: at, session: session, wish: wish,
		origin:  sdp.Origin{ID: uint64(time.Now().UnixNano()), Version: 1},
		settled: make(chan struct{}),
	}
	a.invite = u.invite(t, p, at, sdp.Offer(session.Local(), a.origin, wish))
	u.endpoint.Sign(a.invite)
	if a.invite.Transport() == "UDP" && !endpoint.Fits(a.invite) {
		if p.transport != "" {
			session.Close()
			return nil, fmt.Errorf("invite of %d bytes is too long for UDP, and the trunk wants no other transport", len(a.invite.String()))
		}
		a.invite.SetTransport("TCP") // RFC 3261 section 18.1.1
		a.invite.RemoveHeader("Contact")
		u.endpoint.Sign(a.invite)
	}
	return a, nil
}
