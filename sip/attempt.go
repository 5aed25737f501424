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
	"github.com/parley-voice/parley/sip/health"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
	"github.com/parley-voice/parley/sip/sanitize"
)

// An attempt offers one call to one target. It belongs to the goroutine that runs
// it, except for the fields that mu guards.
type attempt struct {
	*outboundCall

	dest       proxy.Target
	creds      *auth.Credentials
	session    *rtp.Session
	wish       sdp.Capabilities
	localSDP   *sdp.Description // our offer
	interval   time.Duration    // requested session interval
	minSession time.Duration    // shortest session interval that we accept (Min-SE)
	invite     *sip.Request
	tx         sip.ClientTransaction
	sentAt     time.Time

	gotResponse        bool // the carrier has sent a response
	hasRung            bool
	authCount          int    // number of INVITEs sent with credentials
	realm              string // realm of the last challenge
	count422           int    // number of 422 responses
	isUpgradedToTCP    bool   // the INVITE uses TCP because of its length
	canFailOver        bool   // the call may be offered to another target
	abandonCause       media.Cause
	isCanceled         bool             // a CANCEL was sent
	firstResponseTimer <-chan time.Time // fires if no response comes
	graceTimer         <-chan time.Time // limits how long Dial waits after a CANCEL
	cancelTimer        <-chan time.Time // limits how long the attempt waits for the final response after a CANCEL

	settled      chan struct{} // closed when the first 2xx has been handled
	mu           sync.Mutex
	earlyDialogs map[string]*earlyDialog       // early dialogs by the peer's tag
	forks        map[dialog.Key]*dialog.Dialog // dialogs of all phones that answered
}

func (a *attempt) healthAddress() health.Address {
	return health.Address{Transport: a.invite.Transport(), At: a.dest.Hop.Addr}
}

func (a *attempt) run(ctx context.Context) (*leg.Leg, *media.DialError) {
	if err := a.start(ctx); err != nil {
		return nil, err
	}
	ring := time.NewTimer(time.Until(a.until))
	defer ring.Stop()
	silent := time.NewTimer(firstResponseTimeout)
	defer silent.Stop()
	a.firstResponseTimer = silent.C
	return a.wait(ctx, ring.C)
}

// start sends the first INVITE unless the target's NotAfter has passed. On a suspended machine a timer may fire late, so
// it compares the clock.
func (a *attempt) start(ctx context.Context) *media.DialError {
	if a.target.IsLate(time.Now()) {
		return a.fail(ctx, media.ErrTooLate)
	}
	if a.until.IsZero() {
		a.progress(media.Sent)
		wait := a.target.RingTimeout
		if wait <= 0 {
			wait = defaultRingTime
		}
		a.until = time.Now().Add(wait)
	}
	err := a.send(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, media.ErrTooLate):
		return a.fail(ctx, err)
	default:
		// Nothing was sent, so another target may be tried.
		a.canFailOver = ctx.Err() == nil && time.Now().Before(a.until)
		a.ua.proxies.Health.RecordNoAnswer(a.healthAddress(), "no connection", time.Now())
		return a.fail(ctx, err)
	}
}

// send starts a transaction for the finalized INVITE, which may also be one that answers a refusal. Connecting counts as
// ringing time. If the target's NotAfter passes before the INVITE leaves, send returns media.ErrTooLate.
func (a *attempt) send(ctx context.Context) error {
	if a.target.IsLate(time.Now()) {
		return media.ErrTooLate
	}
	until := a.until
	if limit := a.target.NotAfter; !limit.IsZero() && limit.Before(until) {
		until = limit
	}
	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	a.sentAt = time.Now()
	a.sources.AddTarget(a.dest.Hop.Addr.Addr())
	tx, err := a.ua.endpoint.Send(within, a.invite)
	if err != nil && a.isUpgradedToTCP && within.Err() == nil { // no TCP: send it over UDP (RFC 3261 section 18.1.1)
		a.backToUDP()
		tx, err = a.ua.endpoint.Send(within, a.invite)
	}
	switch {
	case err != nil && ctx.Err() == nil && a.target.IsLate(time.Now()):
		return media.ErrTooLate
	case err != nil:
		return err
	}
	invite := a.invite
	tx.OnRetransmission(func(res *sip.Response) { a.onRetransmission(invite, res) }) //nolint:contextcheck // the BYE outlives the caller
	a.tx = tx
	return nil
}

// wait handles events until the attempt has an outcome. The number of provisional
// responses is not bounded.
func (a *attempt) wait(ctx context.Context, ring <-chan time.Time) (*leg.Leg, *media.DialError) {
	quit := ctx.Done()
	for {
		select {
		case res := <-a.tx.Responses():
			if leg, err, over := a.onResponse(ctx, res); over {
				a.removeEarlyDialogs()
				return leg, err
			}
		case <-a.tx.Done():
			a.removeEarlyDialogs()
			return nil, a.fail(ctx, a.tx.Err())
		case <-a.firstResponseTimer:
			if !a.gotResponse {
				a.ua.proxies.Health.RecordNoAnswer(a.healthAddress(), "no answer to INVITE", time.Now())
			}
		case <-quit:
			quit = nil
			a.abandon(media.Canceled) //nolint:contextcheck // the BYE outlives the caller
		case <-ring:
			a.abandon(media.NoAnswer) //nolint:contextcheck // the BYE outlives the caller
		case <-a.graceTimer:
			a.graceTimer = nil
			if a.ua.endpoint.Go(a.waitInBackground) {
				a.isLingering = true
				return nil, dialError(a.abandonCause, errors.New("no response to CANCEL yet"))
			}
		case <-a.cancelTimer:
			a.tx.Terminate()
			a.removeEarlyDialogs()
			return nil, a.fail(ctx, errors.New("no final answer to CANCEL"))
		}
	}
}

func (a *attempt) waitInBackground() {
	a.ua.addActive(1)
	defer a.ua.addActive(-1)
	defer a.ua.endpoint.EndTrace(a.callID)
	_, _ = a.wait(context.Background(), nil)
}

// abandon cancels the call: at once if the carrier has responded, else with its
// first response (RFC 3261 section 9.1).
func (a *attempt) abandon(c media.Cause) {
	if a.abandonCause != "" {
		return
	}
	a.abandonCause = c
	a.session.Close()
	a.graceTimer = time.After(cancelGrace)
	a.sendCancel()
}

func (a *attempt) sendCancel() {
	if a.abandonCause == "" || !a.gotResponse || a.isCanceled {
		return
	}
	a.isCanceled = true
	a.cancelTimer = time.After(cancelTimeout)
	req := newCancel(a.invite)
	a.ua.endpoint.Go(func() {
		// Only the response to the INVITE counts.
		_, _ = a.ua.endpoint.Do(context.Background(), req)
	})
}

// onResponse handles one response. The result is true when the attempt has an
// outcome.
func (a *attempt) onResponse(ctx context.Context, res *sip.Response) (*leg.Leg, *media.DialError, bool) {
	a.ua.endpoint.TraceReceived(res)
	if !a.gotResponse {
		a.ua.proxies.Health.RecordAnswer(a.healthAddress(), time.Now())
	}
	a.pinRealm(res)
	switch {
	case res.IsProvisional():
		a.onProvisional(res) //nolint:contextcheck // the BYE outlives the caller
		return nil, nil, false
	case a.abandonCause == "" && a.ladder.HasRung(): // a 180 was traced, but its goroutine has not run yet
		a.onRinging()
	}
	if res.IsSuccess() {
		a.ua.proxies.Health.RecordAccepted(a.healthAddress(), a.sentAt)
		a.record(res)
		leg, err := a.onAnswer(res) //nolint:contextcheck // the BYE outlives the caller
		return leg, err, true
	}
	refusal := a.prepareRetry(res)
	if refusal == nil {
		if err := a.send(ctx); err != nil {
			return nil, a.fail(ctx, err), true
		}
		return nil, nil, false
	}
	a.record(res)
	a.onRefusal(res)
	a.session.Close()
	if errors.Is(refusal, errFinal) {
		refusal = nil
	}
	return nil, &media.DialError{
		Cause:  causeForStatus(res.StatusCode, res.GetHeader("Retry-After") != nil, a.abandonCause),
		Status: res.StatusCode,
		Reason: sanitize.Clean(res.Reason),
		Err:    refusal,
	}, true
}

// onRefusal records what a refusal says about the target.
func (a *attempt) onRefusal(res *sip.Response) {
	after, pause := proxy.RetryAfter(res)
	switch {
	case res.StatusCode == 503 && pause:
		a.ua.proxies.Health.RecordRetryAfter(a.healthAddress(), after, a.sentAt, time.Now())
	case res.StatusCode < 500 && res.StatusCode != 408:
		a.ua.proxies.Health.RecordAccepted(a.healthAddress(), a.sentAt)
	}
	// If the phone has not rung, another proxy may reach the callee.
	isServerFailure := res.StatusCode == 408 || res.StatusCode/100 == 5
	a.canFailOver = isServerFailure && !a.ladder.HasProgressed() && a.abandonCause == ""
}

// record reports the final response to the meter, and the request delay unless
// ringing reported it.
func (a *attempt) record(res *sip.Response) {
	if a.ua.Meter == nil {
		return
	}
	if !a.hasRung {
		a.ua.Meter.ObserveRequestDelay(time.Since(a.sentAt))
	}
	a.ua.Meter.CountInvite(res.StatusCode)
}

func (a *attempt) onProvisional(res *sip.Response) {
	a.gotResponse = true
	if a.abandonCause != "" {
		a.sendCancel()
		return
	}
	if res.StatusCode == 100 || !a.acceptProvisional(res) {
		return
	}
	if res.StatusCode != 180 && res.StatusCode != 183 {
		return
	}
	a.onRinging()
}

func (a *attempt) onRinging() {
	if a.hasRung {
		return
	}
	a.hasRung = true
	a.ua.proxies.Health.RecordAccepted(a.healthAddress(), a.sentAt)
	if a.ua.Meter != nil {
		a.ua.Meter.ObserveRequestDelay(time.Since(a.sentAt))
	}
	a.progress(media.Ringing)
}

// fail returns the outcome of an attempt without a final response.
func (a *attempt) fail(ctx context.Context, err error) *media.DialError {
	a.session.Close()
	switch {
	case errors.Is(err, media.ErrTooLate):
		return dialError(media.Failure, media.ErrTooLate)
	case a.abandonCause != "":
		return dialError(a.abandonCause, err)
	case ctx.Err() != nil:
		return dialError(media.Canceled, err)
	case isTimeout(err):
		return dialError(media.RouteError, errors.New("the trunk accepts no connection"))
	case errors.Is(err, sip.ErrTransactionTimeout):
		if a.ua.Meter != nil {
			a.ua.Meter.CountInvite(0)
		}
		return dialError(media.RouteError, errors.New("the trunk does not answer"))
	default:
		return dialError(media.RouteError, err)
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout()
}
