package leg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/timer"
)

// offerFor is how long an offer of ours may go without a final answer.
const offerFor = 40 * time.Second

// glares is how often an offer is repeated that crossed one of the peer.
const glares = 3

// errEnded is why nothing can be asked of a peer any more.
var errEnded = errors.New("the call has ended")

// A refusal is a final answer other than 2xx.
type refusal struct {
	method sip.RequestMethod
	status int
	reason string
}

// Error implements error.
func (r *refusal) Error() string {
	return fmt.Sprintf("%s refused: %d %s", r.method, r.status, r.reason)
}

// Hold implements media.Holder.
func (l *Leg) Hold(ctx context.Context, on bool) error {
	was := l.hold.Swap(on)
	if was == on {
		return nil
	}
	if err := l.offer(ctx, true); err != nil {
		l.hold.Store(was)
		return fmt.Errorf("hold: %w", err)
	}
	return nil
}

// offer renews the session: with a new description where changed says that
// ours is another, else as it is. Where it crosses an offer of the peer, it is
// tried again (RFC 3261 section 14.1).
func (l *Leg) offer(ctx context.Context, changed bool) error {
	for n := 0; ; n++ {
		err := l.offerOnce(ctx, changed)
		var refused *refusal
		if n == glares || !errors.As(err, &refused) || refused.status != 491 && refused.status != 422 {
			return err
		}
		if refused.status == 422 {
			continue // with a longer session
		}
		select {
		case <-time.After(backoff(l.dialog.Caller(), rand.IntN)):
		case <-l.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("offer: %w", ctx.Err())
		}
	}
}

// backoff is how long to wait after offers crossed: whoever owns the Call-ID
// 2.1 to 4 s, the other up to 2 s, in steps of 10 ms.
func backoff(owner bool, draw func(n int) int) time.Duration {
	const step = 10 * time.Millisecond
	if owner {
		return 2100*time.Millisecond + time.Duration(draw(191))*step
	}
	return time.Duration(draw(201)) * step
}

func (l *Leg) offerOnce(ctx context.Context, changed bool) error {
	select {
	case l.renew <- struct{}{}:
	case <-l.ended:
		return errEnded
	case <-ctx.Done():
		return fmt.Errorf("offer: %w", ctx.Err())
	}
	l.ours.Store(true)
	defer func() {
		l.ours.Store(false)
		<-l.renew
	}()
	if !changed && l.knows[string(sip.UPDATE)] {
		return l.update() //nolint:contextcheck // a request that has left is seen through
	}
	before := *l.told
	if changed {
		told := before
		told.Direction = l.wanted(sdp.SendRecv)
		l.tell(&told)
	}
	err := l.invite() //nolint:contextcheck // likewise
	if err != nil {   // what was refused is not told, but its version is spent
		before.Origin = l.told.Origin
		l.told = &before
	}
	return err
}

// update refreshes the session without an offer (RFC 4028 section 7.4). A peer
// that takes no UPDATE after all is sent a re-INVITE.
func (l *Leg) update() error {
	req := l.request(sip.UPDATE)
	res, err := l.ask(context.Background(), req)
	switch {
	case errors.Is(err, endpoint.ErrUnsent):
		return err // the peer may be there still
	case err != nil:
		return l.unanswered(err)
	case res.StatusCode == 405 || res.StatusCode == 420 || res.StatusCode == 501:
		delete(l.knows, string(sip.UPDATE))
		return l.invite()
	default:
		return l.renewed(req, res)
	}
}

// request begins a request that renews the session.
func (l *Leg) request(method sip.RequestMethod) *sip.Request {
	req := l.dialog.Request(method)
	req.AppendHeader(sip.NewHeader("Supported", endpoint.Supported))
	req.AppendHeader(sip.NewHeader("Allow", endpoint.Allow))
	least := time.Duration(l.atLeast.Load())
	asked := timer.Interval{Length: max(timer.Default, least), Refresher: timer.UAC}
	if t := l.lives.Load(); t != nil && t.Length > 0 {
		asked.Length = max(t.Length, least)
		if !t.Ours { // it goes on as it was (RFC 4028 section 7.4)
			asked.Refresher = timer.UAS
		}
	}
	req.AppendHeader(sip.NewHeader("Session-Expires", asked.String()))
	req.AppendHeader(sip.NewHeader("Min-SE", timer.Interval{Length: least}.String()))
	return req
}

// finish adds credentials and what every request has.
func (l *Leg) finish(req *sip.Request) error {
	if l.sign != nil {
		if err := l.sign(req); err != nil {
			return err
		}
	}
	l.endpoint.Sign(req)
	return nil
}

// unanswered ends the leg: a dialog whose peer does not answer is gone (RFC
// 3261 section 12.2.1.2).
func (l *Leg) unanswered(err error) error {
	l.end(media.Failure, true)
	return err
}

// renewed takes the final answer to a request that renews the session.
func (l *Leg) renewed(req *sip.Request, res *sip.Response) error {
	switch {
	case res.StatusCode == 408 || res.StatusCode == 481:
		l.end(media.Failure, true)
	case res.StatusCode == 422: // the next one asks for more (RFC 4028 section 7.4)
		if h := res.GetHeader("Min-SE"); h != nil {
			if least, err := timer.ParseLeast(h.Value()); err == nil && int64(least) > l.atLeast.Load() {
				l.atLeast.Store(int64(least))
			}
		}
	case res.IsSuccess():
		l.dialog.Retarget(res.Contact())
		l.agreeTerm(timer.Answered(Expires(res), l.least()))
		return nil
	}
	return &refusal{req.Method, res.StatusCode, res.Reason}
}

// agreeTerm tells who keeps the session what was agreed on last.
func (l *Leg) agreeTerm(t timer.Term) {
	l.lives.Store(&t)
	for {
		select {
		case l.terms <- t:
			return
		default:
		}
		select { // the newest takes the place of one that nobody took
		case <-l.terms:
		default:
		}
	}
}

// invite sends a re-INVITE with the description told last, and sees it through.
func (l *Leg) invite() error {
	req := l.request(sip.INVITE)
	WithSDP(req, l.told)
	if err := l.finish(req); err != nil {
		return err
	}
	tx, err := l.endpoint.Send(context.Background(), req)
	if err != nil && l.dialog.Reroute(req) {
		l.endpoint.Sign(req)
		tx, err = l.endpoint.Send(context.Background(), req)
	}
	if err != nil {
		return err
	}
	acked := make(chan struct{}) // closed when the first 2xx was acknowledged
	tx.OnRetransmission(func(*sip.Response) {
		select {
		case <-acked:
			l.ack(req)
		case <-l.ended:
		}
	})
	limit := time.NewTimer(offerFor)
	defer limit.Stop()
	for {
		select {
		case res := <-tx.Responses():
			l.endpoint.Received(res)
			switch {
			case res.IsProvisional():
				continue
			case !res.IsSuccess():
				return l.renewed(req, res)
			}
			err := l.renewed(req, res)
			l.ack(req)
			close(acked)
			return errors.Join(err, l.accept(res))
		case <-tx.Done():
			return l.unanswered(fmt.Errorf("re-INVITE: %w", errors.Join(errors.New("no answer"), tx.Err())))
		case <-limit.C:
			tx.Terminate()
			return l.unanswered(errors.New("re-INVITE: no final answer"))
		case <-l.ended:
			// Nobody reads on: the last answer must not find the door shut.
			l.endpoint.Go(func() { l.leave(tx, req) })
			return errEnded
		}
	}
}

// leave sees a re-INVITE through whose call has ended.
func (l *Leg) leave(tx sip.ClientTransaction, req *sip.Request) {
	limit := time.NewTimer(offerFor)
	defer limit.Stop()
	defer tx.Terminate()
	for {
		select {
		case res := <-tx.Responses():
			if res.IsSuccess() {
				l.ack(req)
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

func (l *Leg) ack(invite *sip.Request) {
	ack := l.dialog.Ack(invite.CSeq().SeqNo)
	Repay(ack, invite)
	_ = Ack(l.endpoint, l.dialog, ack) // where it is lost, the answer comes once more
}

// Repay gives an ACK the credentials of its INVITE (RFC 3261 section 22.1).
func Repay(ack, invite *sip.Request) {
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		if h := invite.GetHeader(name); h != nil {
			ack.AppendHeader(sip.NewHeader(name, h.Value()))
		}
	}
}

// accept goes on with what the answer to our offer says.
func (l *Leg) accept(res *sip.Response) error {
	theirs, there, err := Description(res)
	if err == nil && !there {
		err = errors.New("answer without a session description")
	}
	if err != nil {
		return err
	}
	agreed, err := Agree(l.session, theirs, l.wish)
	if err != nil {
		return err
	}
	l.session.Start(l.params(agreed))
	return nil
}
