package leg

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/netip"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/sanitize"
)

// Retransmission of a 2xx until its ACK arrives (RFC 3261 section 13.3.1.4).
const (
	timerT1    = 500 * time.Millisecond
	timerT2    = 4 * time.Second
	ackTimeout = 64 * timerT1
)

// overlapWait is how long a re-INVITE waits for the one before it, whose ACK may
// have been overtaken.
const overlapWait = 200 * time.Millisecond

// ReadSDP parses the session description of a message, which may be one part of a
// multipart body (RFC 5621). found is false if the message has none.
func ReadSDP(msg Message) (d *sdp.Description, found bool, err error) {
	text := findSDP(msg)
	if text == nil {
		return nil, false, nil
	}
	d, err = sdp.Parse(text)
	return d, true, err
}

// A Message may have a body.
type Message interface {
	ContentType() *sip.ContentTypeHeader
	Body() []byte
}

const maxParts = 8

func findSDP(msg Message) []byte {
	body, c := msg.Body(), msg.ContentType()
	if len(body) == 0 || c == nil {
		return nil
	}
	kind, params, err := mime.ParseMediaType(string(*c))
	switch {
	case err == nil && strings.HasPrefix(kind, "multipart/"):
		parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
		for range maxParts {
			p, err := parts.NextRawPart()
			if err != nil {
				return nil
			}
			if of, _, _ := strings.Cut(p.Header.Get("Content-Type"), ";"); strings.EqualFold(strings.TrimSpace(of), "application/sdp") {
				text, err := io.ReadAll(p)
				if err != nil {
					return nil
				}
				return text
			}
		}
		return nil
	case strings.EqualFold(token(string(*c)), "application/sdp"):
		return body
	default:
		return nil
	}
}

// Agree negotiates the session of an offer or answer from a peer whose signaling
// address is peer. It returns an error if the session cannot or must
// not send to the media address. The unspecified address means hold in the old
// form (RFC 3264 section 8.4); the agreement is then mute.
func Agree(s *rtp.Session, remote *sdp.Description, w sdp.Capabilities, peer netip.Addr) (sdp.Agreement, error) {
	a, err := sdp.Agree(remote, w)
	if err != nil {
		return a, err
	}
	if to := a.RTCP.Addr(); to.IsValid() && !sanitize.Reachable(to, peer) {
		a.RTCP = netip.AddrPort{}
	}
	to := a.Remote.Addr()
	if to.IsUnspecified() {
		return a, nil
	}
	if err = s.CheckRemote(to); err == nil && !sanitize.Reachable(to, peer) {
		err = fmt.Errorf("the peer requests audio at %v: addresses of this machine or its network are refused, except the trunk's own", to)
	}
	return a, err
}

// SetSDP sets the body of a message to a session description.
func SetSDP[M interface {
	AppendHeader(sip.Header)
	SetBody([]byte)
}](msg M, d *sdp.Description,
) {
	kind := sip.ContentTypeHeader("application/sdp")
	msg.AppendHeader(&kind)
	msg.SetBody(d.Bytes())
}

// SendUntilACK sends a 2xx until its ACK arrives on acks, and returns the ACK. It
// returns nil after 32 s, when stop closes, or if the transaction fails.
func SendUntilACK(tx sip.ServerTransaction, res *sip.Response, acks <-chan *sip.Request, stop <-chan struct{}) *sip.Request {
	wait, end := timerT1, time.NewTimer(ackTimeout)
	defer end.Stop()
	repeat := time.NewTimer(wait)
	defer repeat.Stop()
	if tx.Respond(res) != nil {
		return nil
	}
	for {
		select {
		case ack := <-acks:
			if c := ack.CSeq(); c != nil && c.SeqNo == res.CSeq().SeqNo {
				return ack
			}
		case <-repeat.C:
			if tx.Respond(res) != nil {
				return nil
			}
			wait = min(2*wait, timerT2)
			repeat.Reset(wait)
		case <-end.C:
			return nil
		case <-stop:
			return nil
		}
	}
}

// lock begins the answer to a request that changes the session. ok is false if the
// request was refused, because another offer is pending (RFC 3261 section 14.2).
func (n *negotiator) lock(req *sip.Request, tx sip.ServerTransaction) (unlock func(), ok bool) {
	unlock = func() { <-n.pending }
	select {
	case n.pending <- struct{}{}:
		return unlock, true
	default:
	}
	if n.isOurs.Load() {
		n.leg.endpoint.Respond(tx, req, 491, "Request Pending")
		return nil, false
	}
	select {
	case n.pending <- struct{}{}:
		return unlock, true
	case <-time.After(overlapWait):
		n.leg.endpoint.Respond(tx, req, 500, "Request Pending", sip.NewHeader("Retry-After", "5"))
		return nil, false
	}
}

// onReinvite answers a re-INVITE, with or without an offer.
func (n *negotiator) onReinvite(req *sip.Request, tx sip.ServerTransaction) {
	unlock, ok := n.lock(req, tx)
	if !ok {
		return
	}
	defer unlock()
	l := n.leg
	res, agreed, ok := n.answer(req, tx)
	if !ok {
		return
	}
	if agreed == nil {
		local := *n.local
		local.Direction = n.direction(sdp.SendRecv)
		n.setLocal(&local)
		SetSDP(res, n.local)
	}
	ack := SendUntilACK(tracedTx{tx, l.endpoint}, res, l.acks, l.ended)
	switch {
	case ack == nil:
		l.end(media.Failure, true)
	case agreed == nil: // the ACK carries the answer to our offer
		if remote, found, err := ReadSDP(ack); err == nil && found {
			if agreed, err := Agree(l.session, remote, n.wish, l.dialog.Peer()); err == nil {
				l.session.Start(l.params(agreed))
			}
		}
	}
}

// onUpdate answers an UPDATE (RFC 3311).
func (n *negotiator) onUpdate(req *sip.Request, tx sip.ServerTransaction) {
	unlock, ok := n.lock(req, tx)
	if !ok {
		return
	}
	defer unlock()
	if res, _, ok := n.answer(req, tx); ok {
		n.leg.endpoint.TraceSent(res, req.Source())
		_ = tx.Respond(res) // if the response is lost, the request is retransmitted
	}
}

// answer prepares the response to a re-INVITE or UPDATE: session timer, remote
// target, and the answer to an offer. agreed is nil without an offer. ok is false
// if the request was refused.
func (n *negotiator) answer(req *sip.Request, tx sip.ServerTransaction) (res *sip.Response, agreed *sdp.Agreement, ok bool) {
	l := n.leg
	remote, offered, err := ReadSDP(req)
	if err == nil && offered {
		var a sdp.Agreement
		a, err = Agree(l.session, remote, n.wish, l.dialog.Peer())
		agreed = &a
	}
	if err != nil {
		l.endpoint.Respond(tx, req, 488, "Not Acceptable Here")
		return nil, nil, false
	}
	headers, schedule, ok := l.timer.answer(req)
	if !ok {
		l.endpoint.Respond(tx, req, 422, "Session Interval Too Small",
			sip.NewHeader("Min-SE", dialog.SessionExpires{Length: l.timer.minimum}.String()))
		return nil, nil, false
	}
	l.dialog.Retarget(req.Contact())
	res = sip.NewResponseFromRequest(req, 200, "OK", nil)
	res.AppendHeader(l.endpoint.Contact(l.dialog.Transport()))
	res.AppendHeader(sip.NewHeader("Allow", endpoint.Allow))
	res.AppendHeader(sip.NewHeader("Supported", endpoint.Supported))
	for _, h := range headers {
		res.AppendHeader(h)
	}
	if agreed != nil {
		local := sdp.Answer(l.session.Local(), n.local.Origin, *agreed)
		local.Direction = n.direction(local.Direction)
		n.setLocal(local)
		n.expected = AddSource(n.expected, req.Source())
		l.session.Start(l.params(*agreed))
		SetSDP(res, n.local)
	}
	l.timer.set(schedule)
	return res, agreed, true
}

type tracedTx struct {
	sip.ServerTransaction

	endpoint *endpoint.Endpoint
}

func (t tracedTx) Respond(res *sip.Response) error {
	t.endpoint.TraceSent(res, res.Destination())
	return t.ServerTransaction.Respond(res)
}

// ACKs receives the ACK of the call's first 2xx, for the caller of New to wait on.
func (l *Leg) ACKs() <-chan *sip.Request { return l.acks }
