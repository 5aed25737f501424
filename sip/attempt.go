package sip

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/guard"
)

// An attempt is one call on its way to an answer. It belongs to the goroutine
// that runs it, save for what mu guards.
type attempt struct {
	ua      *UA
	target  media.Target
	at      netip.AddrPort // of the proxy
	session *rtp.Session
	wish    sdp.Wish
	origin  sdp.Origin
	invite  *sip.Request
	tx      sip.ClientTransaction

	trying    bool // the carrier has said something
	rang      bool
	auth      int // times that credentials were sent
	gaveUp    media.Cause
	cancelled bool // a CANCEL was sent
	early     *sdp.Agreement
	until     time.Time        // the phone may ring
	patience  <-chan time.Time // ends the wait of the caller
	dead      <-chan time.Time // ends the wait of everybody

	settled chan struct{} // closed when the first 2xx was dealt with
	mu      sync.Mutex
	forks   map[dialog.Key]*dialog.Dialog // answered, the first and others
}

// run sends the INVITE and sees it through.
func (a *attempt) run(ctx context.Context, progress func(media.Progress)) (*endpoint.Leg, *media.DialError) {
	if err := a.open(ctx, progress); err != nil {
		return nil, err
	}
	ring := time.NewTimer(time.Until(a.until))
	defer ring.Stop()
	return a.loop(ctx, ring.C, progress)
}

// open sends the first INVITE, if it may leave still. Over TCP the connection
// must be there by then too.
func (a *attempt) open(ctx context.Context, progress func(media.Progress)) *media.DialError {
	within := ctx
	if limit := a.target.NotAfter; !limit.IsZero() {
		var cancel context.CancelFunc
		within, cancel = context.WithDeadline(ctx, limit)
		defer cancel()
		// A timer may be late on a machine that was stopped; the clock is not.
		if !time.Now().Before(limit) {
			a.session.Close()
			return failed(media.Failure, media.ErrTooLate)
		}
	}
	progress(media.Sent)
	wait := a.target.RingFor
	if wait <= 0 {
		wait = ringFor
	}
	a.until = time.Now().Add(wait)
	err := a.send(within)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && within.Err() != nil:
		a.session.Close()
		return failed(media.Failure, media.ErrTooLate)
	default:
		return a.broken(ctx, err)
	}
}

// send begins a transaction for the INVITE, which is signed. The time that
// connecting takes is time to ring.
func (a *attempt) send(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, a.until)
	defer cancel()
	tx, err := a.ua.endpoint.Send(ctx, a.invite)
	if err != nil {
		return err
	}
	invite := a.invite
	tx.OnRetransmission(func(res *sip.Response) { a.again(invite, res) }) //nolint:contextcheck // what hangs up outlives the caller
	a.tx = tx
	return nil
}

// loop waits for what comes next until the attempt has an outcome. It counts
// no responses: a phone may ring for as long as it likes.
func (a *attempt) loop(ctx context.Context, ring <-chan time.Time, progress func(media.Progress)) (*endpoint.Leg, *media.DialError) {
	quit := ctx.Done()
	for {
		select {
		case res := <-a.tx.Responses():
			if leg, err, over := a.response(ctx, res, progress); over {
				return leg, err
			}
		case <-a.tx.Done():
			return nil, a.broken(ctx, a.tx.Err())
		case <-quit:
			quit = nil
			a.giveUp(media.Cancelled) //nolint:contextcheck // what hangs up outlives the caller
		case <-ring:
			a.giveUp(media.NoAnswer) //nolint:contextcheck // what hangs up outlives the caller
		case <-a.patience:
			a.patience = nil
			if a.ua.endpoint.Go(a.linger) {
				return nil, failed(a.gaveUp, errors.New("no word from the carrier yet"))
			}
		case <-a.dead:
			a.tx.Terminate()
			return nil, a.broken(ctx, errors.New("no final answer to CANCEL"))
		}
	}
}

// linger sees a call that was given up through, when nobody waits for it.
func (a *attempt) linger() {
	a.ua.count(1)
	defer a.ua.count(-1)
	_, _ = a.loop(context.Background(), nil, func(media.Progress) {})
}

// giveUp cancels the call: at once where the carrier has said something, else
// as soon as it does (RFC 3261 section 9.1).
func (a *attempt) giveUp(c media.Cause) {
	if a.gaveUp != "" {
		return
	}
	a.gaveUp = c
	a.session.Close()
	a.patience = time.After(grace)
	a.cancel()
}

func (a *attempt) cancel() {
	if a.gaveUp == "" || !a.trying || a.cancelled {
		return
	}
	a.cancelled = true
	a.dead = time.After(cancelFor)
	req := cancel(a.invite)
	a.ua.endpoint.Go(func() {
		// Only the answer to the INVITE counts.
		_, _ = a.ua.endpoint.Ask(context.Background(), req)
	})
}

// response takes one response. It is over when the attempt has an outcome.
func (a *attempt) response(ctx context.Context, res *sip.Response, progress func(media.Progress)) (*endpoint.Leg, *media.DialError, bool) {
	switch {
	case res.IsProvisional():
		a.provisional(res, progress) //nolint:contextcheck // what hangs up outlives the caller
		return nil, nil, false
	case res.IsSuccess():
		leg, err := a.answered(res) //nolint:contextcheck // what hangs up outlives the caller
		return leg, err, true
	}
	refusal := a.authorize(res)
	if refusal == nil {
		if err := a.send(ctx); err != nil {
			return nil, a.broken(ctx, err), true
		}
		return nil, nil, false
	}
	a.session.Close()
	if errors.Is(refusal, errNoChallenge) {
		refusal = nil
	}
	return nil, &media.DialError{
		Cause:  cause(res.StatusCode, res.GetHeader("Retry-After") != nil, a.gaveUp),
		Status: res.StatusCode,
		Reason: guard.Clean(res.Reason),
		Err:    refusal,
	}, true
}

func (a *attempt) provisional(res *sip.Response, progress func(media.Progress)) {
	a.trying = true
	if a.gaveUp != "" {
		a.cancel()
		return
	}
	if res.StatusCode != 180 && res.StatusCode != 183 {
		return
	}
	if !a.rang {
		a.rang = true
		progress(media.Ringing)
	}
	if theirs, there, err := endpoint.Description(res); err == nil && there {
		if agreed, err := endpoint.Agree(a.session, theirs, a.wish); err == nil {
			a.early = &agreed
			a.session.Start(endpoint.Early(agreed))
		}
	}
}

// broken is the outcome of an attempt that got no final answer.
func (a *attempt) broken(ctx context.Context, err error) *media.DialError {
	a.session.Close()
	switch {
	case a.gaveUp != "":
		return failed(a.gaveUp, err)
	case ctx.Err() != nil:
		return failed(media.Cancelled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return failed(media.RouteError, errors.New("the trunk takes no connection"))
	case errors.Is(err, sip.ErrTransactionTimeout):
		return failed(media.RouteError, errors.New("the trunk does not answer"))
	default:
		return failed(media.RouteError, err)
	}
}
