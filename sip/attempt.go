package sip

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/guard"
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
)

// An attempt is one call at one place, on its way to an answer. It belongs to
// the goroutine that runs it, save for what mu guards.
type attempt struct {
	*dialling

	at      proxy.Place
	creds   *auth.Credentials
	session *rtp.Session
	wish    sdp.Wish
	told    *sdp.Description // our offer
	expires time.Duration    // of the session, as asked for
	least   time.Duration    // that the session may last
	invite  *sip.Request
	tx      sip.ClientTransaction
	sentAt  time.Time

	trying    bool // the carrier has said something
	rang      bool
	auth      int    // times that credentials were sent for a challenge
	realm     string // of the last challenge
	tooSmall  int    // times that the session interval was
	grown     bool   // the INVITE goes over TCP for its length alone
	elsewhere bool   // the call may be offered to another place
	gaveUp    media.Cause
	cancelled bool             // a CANCEL was sent
	silent    <-chan time.Time // the carrier should have said something
	patience  <-chan time.Time // ends the wait of the caller
	dead      <-chan time.Time // ends the wait of everybody

	settled chan struct{} // closed when the first 2xx was dealt with
	mu      sync.Mutex
	early   map[string]*early             // by the peer's tag
	forks   map[dialog.Key]*dialog.Dialog // answered, the first and others
}

// address is the place as its health is known by.
func (a *attempt) address() health.Address {
	return health.Address{Transport: a.invite.Transport(), At: a.at.Hop.Addr}
}

// run sends the INVITE and sees it through.
func (a *attempt) run(ctx context.Context) (*leg.Leg, *media.DialError) {
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	ring := time.NewTimer(time.Until(a.until))
	defer ring.Stop()
	silent := time.NewTimer(silentFor)
	defer silent.Stop()
	a.silent = silent.C
	return a.loop(ctx, ring.C)
}

// open sends the first INVITE, if it may leave still. Over TCP the connection
// must be there by then too.
func (a *attempt) open(ctx context.Context) *media.DialError {
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
	if a.until.IsZero() {
		a.progress(media.Sent)
		wait := a.target.RingFor
		if wait <= 0 {
			wait = ringFor
		}
		a.until = time.Now().Add(wait)
	}
	err := a.send(within)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && within.Err() != nil:
		a.session.Close()
		return failed(media.Failure, media.ErrTooLate)
	default:
		// Nothing has left: another place may be asked.
		a.elsewhere = ctx.Err() == nil && time.Now().Before(a.until)
		a.ua.proxies.Health.Silent(a.address(), "no connection", time.Now())
		return a.broken(ctx, err)
	}
}

// send begins a transaction for the INVITE, which is signed. The time that
// connecting takes is time to ring.
func (a *attempt) send(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, a.until)
	defer cancel()
	a.sentAt = time.Now()
	tx, err := a.ua.endpoint.Send(ctx, a.invite)
	if err != nil && a.grown && ctx.Err() == nil { // RFC 3261 section 18.1.1
		a.shrink()
		tx, err = a.ua.endpoint.Send(ctx, a.invite)
	}
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
func (a *attempt) loop(ctx context.Context, ring <-chan time.Time) (*leg.Leg, *media.DialError) {
	quit := ctx.Done()
	for {
		select {
		case res := <-a.tx.Responses():
			if leg, err, over := a.response(ctx, res); over {
				a.forget()
				return leg, err
			}
		case <-a.tx.Done():
			a.forget()
			return nil, a.broken(ctx, a.tx.Err())
		case <-a.silent:
			if !a.trying {
				a.ua.proxies.Health.Silent(a.address(), "no answer to INVITE", time.Now())
			}
		case <-quit:
			quit = nil
			a.giveUp(media.Cancelled) //nolint:contextcheck // what hangs up outlives the caller
		case <-ring:
			a.giveUp(media.NoAnswer) //nolint:contextcheck // what hangs up outlives the caller
		case <-a.patience:
			a.patience = nil
			if a.ua.endpoint.Go(a.linger) {
				a.lingers = true
				return nil, failed(a.gaveUp, errors.New("no word from the carrier yet"))
			}
		case <-a.dead:
			a.tx.Terminate()
			a.forget()
			return nil, a.broken(ctx, errors.New("no final answer to CANCEL"))
		}
	}
}

// linger sees a call that was given up through, when nobody waits for it.
func (a *attempt) linger() {
	a.ua.count(1)
	defer a.ua.count(-1)
	defer a.ua.endpoint.Forget(a.callID)
	_, _ = a.loop(context.Background(), nil)
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
func (a *attempt) response(ctx context.Context, res *sip.Response) (*leg.Leg, *media.DialError, bool) {
	a.ua.endpoint.Received(res)
	if !a.trying {
		a.ua.proxies.Health.Answered(a.address(), time.Now())
	}
	a.pin(res)
	switch {
	case res.IsProvisional():
		a.provisional(res) //nolint:contextcheck // what hangs up outlives the caller
		return nil, nil, false
	case a.gaveUp == "" && a.ladder.Rang(): // a ring may still be on its way here
		a.ring()
	}
	switch {
	case res.IsSuccess():
		a.measure(res)
		leg, err := a.answered(res) //nolint:contextcheck // what hangs up outlives the caller
		return leg, err, true
	}
	refusal := a.retry(res)
	if refusal == nil {
		if err := a.send(ctx); err != nil {
			return nil, a.broken(ctx, err), true
		}
		return nil, nil, false
	}
	a.measure(res)
	a.refused(res)
	a.session.Close()
	if errors.Is(refusal, errFinal) {
		refusal = nil
	}
	return nil, &media.DialError{
		Cause:  cause(res.StatusCode, res.GetHeader("Retry-After") != nil, a.gaveUp),
		Status: res.StatusCode,
		Reason: guard.Clean(res.Reason),
		Err:    refusal,
	}, true
}

// refused notes what a refusal says of the place, and of others.
func (a *attempt) refused(res *sip.Response) {
	if res.StatusCode == 503 {
		if after, ok := proxy.RetryAfter(res); ok {
			a.ua.proxies.Health.Bar(a.address(), after, time.Now())
		}
	}
	// No phone has rung, and another proxy may find it.
	a.elsewhere = !a.ladder.Moved() && a.gaveUp == "" && (res.StatusCode == 408 || res.StatusCode >= 500 && res.StatusCode < 600)
}

// measure tells how the INVITE went, once.
func (a *attempt) measure(res *sip.Response) {
	if a.ua.Meter != nil && !a.rang {
		a.ua.Meter.Requested(time.Since(a.sentAt))
	}
	if a.ua.Meter != nil {
		a.ua.Meter.Invited(res.StatusCode)
	}
}

func (a *attempt) provisional(res *sip.Response) {
	a.trying = true
	if a.gaveUp != "" {
		a.cancel()
		return
	}
	if res.StatusCode == 100 || !a.hear(res) {
		return
	}
	if res.StatusCode != 180 && res.StatusCode != 183 {
		return
	}
	a.ring()
}

// ring tells, once, that the phone rings.
func (a *attempt) ring() {
	if a.rang {
		return
	}
	a.rang = true
	if a.ua.Meter != nil {
		a.ua.Meter.Requested(time.Since(a.sentAt))
	}
	a.progress(media.Ringing)
}

// broken is the outcome of an attempt that got no final answer.
func (a *attempt) broken(ctx context.Context, err error) *media.DialError {
	a.session.Close()
	switch {
	case a.gaveUp != "":
		return failed(a.gaveUp, err)
	case ctx.Err() != nil:
		return failed(media.Cancelled, err)
	case isTimeout(err):
		return failed(media.RouteError, errors.New("the trunk takes no connection"))
	case errors.Is(err, sip.ErrTransactionTimeout):
		if a.ua.Meter != nil {
			a.ua.Meter.Invited(0)
		}
		return failed(media.RouteError, errors.New("the trunk does not answer"))
	default:
		return failed(media.RouteError, err)
	}
}

// isTimeout says that connecting took too long.
func isTimeout(err error) bool {
	var slow net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout()
}
