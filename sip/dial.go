package sip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
	"github.com/parley-voice/parley/sip/siptrace"
)

const (
	defaultRingTime = 45 * time.Second // used if the target sets none
	// cancelGrace is how long Dial waits for the response to a CANCEL. Later ones
	// are handled in the background.
	cancelGrace = 2 * time.Second
	// cancelTimeout is how long a canceled call may go without a final response
	// (RFC 3261 section 9.1).
	cancelTimeout = 32 * time.Second
	// firstResponseTimeout is how long a carrier may take to respond before later calls avoid it.
	// The call itself continues, because it may ring.
	firstResponseTimeout = 4 * time.Second
)

// Dial calls t and returns its leg once it is answered. Its error is always a
// *media.DialError.
//
// progress, which may be nil, receives media.Sent immediately before the first
// byte is sent, and media.Ringing when the callee first rings, on the caller's
// goroutine. Without media.Sent, nothing was sent.
//
// If a proxy cannot take the call, Dial tries the next: after a final 408 or 5xx
// before ringing, or if no connection could be made. It does not repeat an INVITE
// without any response elsewhere, since that may have rung.
//
// If ctx ends, or nothing answers in time, Dial cancels the call. A 2xx that
// crosses the CANCEL is hung up and not reported.
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
		return nil, dialError(media.Canceled, endpoint.ErrClosed)
	}
	defer release()
	ctx, leave := endpoint.WithStop(ctx, u.quit)
	defer leave()
	all, err := checkTarget(t)
	if err != nil {
		return nil, dialError(media.RouteError, err)
	}
	if progress == nil {
		progress = func(media.Progress) {}
	}
	u.addActive(1)
	defer u.addActive(-1)
	d := u.newOutboundCall(t, all, progress)
	leg, failure := d.run(ctx, all)
	if failure != nil {
		d.ladder.Explain(explain(failure), time.Now())
		failure.Ladder = d.ladder.Messages()
		if !d.isLingering {
			u.endpoint.EndTrace(d.callID)
		}
	}
	return leg, failure
}

// explain returns what the carrier's response does not show: why a refused call was not retried,
// or what failed on our side.
func explain(f *media.DialError) string {
	switch {
	case f.Err != nil:
		return f.Err.Error()
	case f.Cause == media.Redirected:
		return "redirects are not supported"
	case f.Status == 503 && f.Cause == media.RouteError:
		return "route_error: the carrier sent no Retry-After"
	default:
		return ""
	}
}

func dialError(c media.Cause, err error) *media.DialError {
	return &media.DialError{Cause: c, Err: err}
}

func (u *UA) addActive(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.active += n
}

// An outboundCall is one call until it is answered, at any proxy. It belongs to
// the goroutine of Dial.
type outboundCall struct {
	ua          *UA
	target      media.Target
	progress    func(media.Progress)
	callID      string
	tag         string // tag of the From header
	cseq        uint32 // CSeq of the last INVITE
	sources     *endpoint.Sources
	ladder      *siptrace.Ladder
	until       time.Time // when ringing ends; zero before the first INVITE
	isLingering bool      // waitInBackground ends the trace, not Dial
}

func (u *UA) newOutboundCall(t media.Target, all []proxy.Proxy, progress func(media.Progress)) *outboundCall {
	d := &outboundCall{
		ua: u, target: t, progress: progress, tag: sip.GenerateTagN(16),
		callID: t.ID + "@" + u.endpoint.Addr().Addr().String(),
	}
	d.sources = &endpoint.Sources{IsProxy: func(a netip.Addr) bool { return u.proxies.HasAddress(all, a) }, Networks: t.Trunk.Sources}
	d.ladder = u.endpoint.StartTrace(d.callID, d.sources)
	return d
}

// run offers the call to each target until one takes it or no further target may be tried.
func (d *outboundCall) run(ctx context.Context, all []proxy.Proxy) (*leg.Leg, *media.DialError) {
	var last *media.DialError
	for at, err := range d.ua.proxies.Targets(ctx, all) {
		switch {
		case ctx.Err() != nil:
			return nil, dialError(media.Canceled, ctx.Err())
		case errors.Is(err, media.ErrPaused):
			return nil, dialError(media.Congestion, err)
		case err != nil:
			return nil, dialError(media.RouteError, err)
		}
		a, err := d.newAttempt(at)
		if err != nil {
			return nil, dialError(media.RouteError, err)
		}
		leg, failure := a.run(ctx)
		d.cseq = a.invite.CSeq().SeqNo
		if failure == nil || !a.canFailOver {
			return leg, failure
		}
		last = failure
	}
	return nil, last
}

func (d *outboundCall) newAttempt(at proxy.Target) (*attempt, error) {
	wish, err := sdp.CapabilitiesFor(d.target.Trunk)
	if err != nil {
		return nil, err
	}
	session, err := d.ua.Media.Listen()
	if err != nil {
		return nil, err
	}
	a := &attempt{
		outboundCall: d, dest: at, creds: &auth.Credentials{Username: d.target.Trunk.Username, Password: d.target.Trunk.Password},
		session: session, wish: wish, interval: d.ua.sessionInterval(), minSession: d.ua.minSession(),
		localSDP: sdp.Offer(session.Local(), sdp.Origin{ID: uint64(time.Now().UnixNano()), Version: 1}, wish),
		settled:  make(chan struct{}),
	}
	a.invite, err = d.newInvite(at, a.localSDP, a.interval, a.minSession)
	if err == nil {
		err = a.fitTransport()
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return a, nil
}

// fitTransport finalizes the INVITE. If it is too long for UDP, it uses TCP
// unless the trunk prescribes UDP (RFC 3261 section 18.1.1).
func (a *attempt) fitTransport() error {
	e := a.ua.endpoint
	e.Finalize(a.invite)
	if a.invite.Transport() != "UDP" || endpoint.FitsUDP(a.invite) {
		return nil
	}
	if a.dest.Proxy.Transport != "" {
		return fmt.Errorf("invite of %d bytes is too long for UDP; allow TCP in the trunk's proxy", len(a.invite.String()))
	}
	a.isUpgradedToTCP = true
	a.switchTransport("TCP")
	return nil
}

func (a *attempt) backToUDP() {
	a.isUpgradedToTCP = false
	a.switchTransport("UDP")
}

func (a *attempt) switchTransport(transport string) {
	a.invite.SetTransport(transport)
	a.invite.RemoveHeader("Contact")
	a.ua.endpoint.Finalize(a.invite)
}
