package leg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/latch"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
)

const (
	// offerTimeout is how long our offer may remain without a final answer.
	offerTimeout = 40 * time.Second
	// maxGlares bounds the retries of an offer that crossed one of the peer.
	maxGlares = 3
)

// errEnded is returned for requests after the call has ended.
var errEnded = errors.New("the call has ended")

// A refusal is a final response other than 2xx.
type refusal struct {
	method sip.RequestMethod
	status int
	reason string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s refused: %d %s", r.method, r.status, r.reason)
}

// A negotiator exchanges offers and answers within the call. The goroutine that
// fills pending owns expected, local and allowsUpdate until it empties pending.
type negotiator struct {
	leg  *Leg
	wish sdp.Capabilities

	pending      chan struct{}         // full while an offer is pending
	isOurs       atomic.Bool           // the pending offer is our own
	onHold       atomic.Bool           // we have put the peer on hold
	expected     latch.ExpectedSources // addresses that the peer named
	local        *sdp.Description
	allowsUpdate bool // the peer allows UPDATE
}

// Hold implements media.Holder.
func (l *Leg) Hold(ctx context.Context, on bool) error {
	was := l.offers.onHold.Swap(on)
	if was == on {
		return nil
	}
	if err := l.offers.offer(ctx, true); err != nil {
		l.offers.onHold.Store(was)
		return fmt.Errorf("hold: %w", err)
	}
	return nil
}

// offer refreshes the session, with a new description if changed is set. It
// retries an offer that crosses one of the peer (RFC 3261 section 14.1).
func (n *negotiator) offer(ctx context.Context, changed bool) error {
	for attempt := 0; ; attempt++ {
		err := n.offerOnce(ctx, changed)
		var refused *refusal
		if attempt == maxGlares || !errors.As(err, &refused) || refused.status != 491 && refused.status != 422 {
			return err
		}
		if refused.status == 422 {
			continue // with a longer session interval
		}
		select {
		case <-time.After(backoff(n.leg.dialog.IsCaller(), rand.IntN)):
		case <-n.leg.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("offer: %w", ctx.Err())
		}
	}
}

// backoff returns the delay after a glare: 2.1 to 4 s for the owner of the
// Call-ID, else up to 2 s, in steps of 10 ms (RFC 3261 section 14.1).
func backoff(isOwner bool, draw func(n int) int) time.Duration {
	const step = 10 * time.Millisecond
	if isOwner {
		return 2100*time.Millisecond + time.Duration(draw(191))*step
	}
	return time.Duration(draw(201)) * step
}

func (n *negotiator) offerOnce(ctx context.Context, changed bool) error {
	select {
	case n.pending <- struct{}{}:
	case <-n.leg.ended:
		return errEnded
	case <-ctx.Done():
		return fmt.Errorf("offer: %w", ctx.Err())
	}
	n.isOurs.Store(true)
	defer func() {
		n.isOurs.Store(false)
		<-n.pending
	}()
	if !changed && n.allowsUpdate {
		return n.sendUpdate() //nolint:contextcheck // a request that was sent is completed
	}
	before := *n.local
	if changed {
		next := before
		next.Direction = n.direction(sdp.SendRecv)
		n.setLocal(&next)
	}
	err := n.sendInvite() //nolint:contextcheck // likewise
	if err != nil {       // go back to the old description, but with a new version: the last one was sent
		before.Origin = n.local.Origin
		n.local = &before
	}
	return err
}

// setLocal sets our description. Its version grows only if the description
// changed (RFC 3264 section 8).
func (n *negotiator) setLocal(d *sdp.Description) {
	if !bytes.Equal(d.Bytes(), n.local.Bytes()) {
		d.Origin.Version++
	}
	n.local = d
}

// direction limits a direction while we hold the peer.
func (n *negotiator) direction(d sdp.Direction) sdp.Direction {
	switch {
	case !n.onHold.Load():
		return d
	case d == sdp.SendRecv:
		return sdp.SendOnly
	case d == sdp.RecvOnly:
		return sdp.Inactive
	default:
		return d
	}
}

// sendUpdate refreshes the session without an offer (RFC 4028 section 7.4). If
// the peer does not support UPDATE after all, it sends a re-INVITE.
func (n *negotiator) sendUpdate() error {
	req := n.newRequest(sip.UPDATE)
	res, err := n.leg.do(context.Background(), req)
	switch {
	case errors.Is(err, endpoint.ErrUnsent):
		return err // nothing was sent, so the peer may still be there
	case err != nil:
		return n.endUnanswered(err)
	case res.StatusCode == 405 || res.StatusCode == 420 || res.StatusCode == 501:
		n.allowsUpdate = false
		return n.sendInvite()
	default:
		return n.onResponse(req, res)
	}
}

// newRequest returns a request that refreshes the session.
func (n *negotiator) newRequest(method sip.RequestMethod) *sip.Request {
	req := n.leg.dialog.Request(method)
	req.AppendHeader(sip.NewHeader("Supported", endpoint.Supported))
	req.AppendHeader(sip.NewHeader("Allow", endpoint.Allow))
	n.leg.timer.request(req)
	return req
}

// endUnanswered ends the leg: a dialog is over when its peer does not answer
// (RFC 3261 section 12.2.1.2).
func (n *negotiator) endUnanswered(err error) error {
	n.leg.end(media.Failure, true)
	return err
}

// onResponse handles the final response to a request that refreshes the session.
func (n *negotiator) onResponse(req *sip.Request, res *sip.Response) error {
	l := n.leg
	switch {
	case res.StatusCode == 408 || res.StatusCode == 481:
		l.end(media.Failure, true)
	case res.StatusCode == 422: // the next request asks for a longer interval (RFC 4028 section 7.4)
		l.timer.raise(res)
	case res.IsSuccess():
		l.dialog.Retarget(res.Contact())
		l.timer.set(dialog.ScheduleFromResponse(SessionExpires(res), l.timer.minimum))
		return nil
	}
	return &refusal{req.Method, res.StatusCode, res.Reason}
}

// sendInvite sends a re-INVITE with our description and handles its responses.
func (n *negotiator) sendInvite() error {
	l := n.leg
	req := n.newRequest(sip.INVITE)
	SetSDP(req, n.local)
	if l.authorize != nil {
		if err := l.authorize(req); err != nil {
			return err
		}
	}
	l.endpoint.Finalize(req)
	tx, err := l.endpoint.Send(context.Background(), req)
	if err != nil && l.dialog.Reroute(req) {
		l.endpoint.Finalize(req)
		tx, err = l.endpoint.Send(context.Background(), req)
	}
	if err != nil {
		return err
	}
	acked := make(chan struct{}) // closed when the first 2xx was acknowledged
	tx.OnRetransmission(func(*sip.Response) {
		select {
		case <-acked:
			n.sendACK(req)
		case <-l.ended:
		}
	})
	limit := time.NewTimer(offerTimeout)
	defer limit.Stop()
	for {
		select {
		case res := <-tx.Responses():
			l.endpoint.TraceReceived(res)
			switch {
			case res.IsProvisional():
				continue
			case !res.IsSuccess():
				return n.onResponse(req, res)
			}
			err := n.onResponse(req, res)
			n.sendACK(req)
			close(acked)
			return errors.Join(err, n.acceptAnswer(res))
		case <-tx.Done():
			return n.endUnanswered(fmt.Errorf("re-INVITE: %w", errors.Join(errors.New("no answer"), tx.Err())))
		case <-limit.C:
			tx.Terminate()
			return n.endUnanswered(errors.New("re-INVITE: no final answer"))
		case <-l.ended:
			l.endpoint.Go(func() { n.finishInvite(tx, req) })
			return errEnded
		}
	}
}

// finishInvite completes a re-INVITE after the call has ended: a late 2xx still
// needs its ACK.
func (n *negotiator) finishInvite(tx sip.ClientTransaction, req *sip.Request) {
	limit := time.NewTimer(offerTimeout)
	defer limit.Stop()
	defer tx.Terminate()
	for {
		select {
		case res := <-tx.Responses():
			if res.IsSuccess() {
				n.sendACK(req)
			}
			if !res.IsProvisional() {
				return
			}
		case <-tx.Done():
			return
		case <-limit.C:
			return
		}
	}
}

func (n *negotiator) sendACK(invite *sip.Request) {
	ack := n.leg.dialog.Ack(invite.CSeq().SeqNo)
	CopyCredentials(ack, invite)
	_ = SendACK(n.leg.endpoint, n.leg.dialog, ack) // if the ACK is lost, the 2xx is retransmitted
}

// CopyCredentials gives an ACK the credentials of its INVITE (RFC 3261 section
// 22.1).
func CopyCredentials(ack, invite *sip.Request) {
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		if h := invite.GetHeader(name); h != nil {
			ack.AppendHeader(sip.NewHeader(name, h.Value()))
		}
	}
}

func (n *negotiator) acceptAnswer(res *sip.Response) error {
	l := n.leg
	remote, found, err := ReadSDP(res)
	if err == nil && !found {
		err = errors.New("answer without a session description")
	}
	if err != nil {
		return err
	}
	agreed, err := Agree(l.session, remote, n.wish, l.dialog.Peer())
	if err != nil {
		return err
	}
	n.expected = AddSource(n.expected, res.Source())
	l.session.Start(l.params(agreed))
	return nil
}
