package leg

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/endpoint"
)

// Intervals at which an answer is repeated until its ACK comes (RFC 3261
// section 13.3.1.4).
const (
	firstRepeat = 500 * time.Millisecond
	lastRepeat  = 4 * time.Second
	giveUpAfter = 64 * firstRepeat
)

// overlap is how long a re-INVITE waits for the one before it, whose ACK may
// have been overtaken.
const overlap = 200 * time.Millisecond

// Description reads the session description of a message, which may have none,
// or one among other parts (RFC 5621).
func Description(msg Bodied) (d *sdp.Description, there bool, err error) {
	text := description(msg)
	if text == nil {
		return nil, false, nil
	}
	d, err = sdp.Parse(text)
	return d, true, err
}

// A Bodied message may have a body.
type Bodied interface {
	ContentType() *sip.ContentTypeHeader
	Body() []byte
}

// mostParts bounds the parts of a body that are looked through.
const mostParts = 8

// description is the text of a message's description, nil where it has none.
func description(msg Bodied) []byte {
	body, c := msg.Body(), msg.ContentType()
	if len(body) == 0 || c == nil {
		return nil
	}
	kind, params, err := mime.ParseMediaType(string(*c))
	switch {
	case err == nil && strings.HasPrefix(kind, "multipart/"):
		parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
		for range mostParts {
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

// Agree finds what a session that wishes w and the side that wrote theirs agree
// on. An
// address that the session cannot send to is refused, save the unspecified
// one: that is the old way to hold (RFC 3264 section 8.4), and the agreement
// is mute.
func Agree(s *rtp.Session, theirs *sdp.Description, w sdp.Wish) (sdp.Agreement, error) {
	a, err := sdp.Agree(theirs, w)
	if err != nil {
		return a, err
	}
	if to := a.Remote.Addr(); !to.IsUnspecified() {
		err = s.Reaches(to)
	}
	return a, err
}

// WithSDP gives a message a session description.
func WithSDP[M interface {
	AppendHeader(sip.Header)
	SetBody([]byte)
}](msg M, d *sdp.Description,
) {
	kind := sip.ContentTypeHeader("application/sdp")
	msg.AppendHeader(&kind)
	msg.SetBody(d.Bytes())
}

// Repeat sends a 2xx until acks yields the ACK of it, and returns that; or nil
// where none came in time, where stop closed, or the transaction broke.
func Repeat(tx sip.ServerTransaction, res *sip.Response, acks <-chan *sip.Request, stop <-chan struct{}) *sip.Request {
	wait, end := firstRepeat, time.NewTimer(giveUpAfter)
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
			wait = min(2*wait, lastRepeat)
			repeat.Reset(wait)
		case <-end.C:
			return nil
		case <-stop:
			return nil
		}
	}
}

// turn takes the right to change the session for a request of the peer, and
// is false where it was refused: our own offer is pending (RFC 3261 section
// 14.2), or another of the peer's is.
func (l *Leg) turn(req *sip.Request, tx sip.ServerTransaction) (leave func(), ok bool) {
	leave = func() { <-l.renew }
	select {
	case l.renew <- struct{}{}:
		return leave, true
	default:
	}
	if l.ours.Load() {
		l.endpoint.Respond(tx, req, 491, "Request Pending")
		return nil, false
	}
	select {
	case l.renew <- struct{}{}:
		return leave, true
	case <-time.After(overlap):
		l.endpoint.Respond(tx, req, 500, "Request Pending", sip.NewHeader("Retry-After", "5"))
		return nil, false
	}
}

// reinvite answers an offer, or a wish for one, within the call.
func (l *Leg) reinvite(req *sip.Request, tx sip.ServerTransaction) {
	leave, ok := l.turn(req, tx)
	if !ok {
		return
	}
	defer leave()
	res, agreed, ok := l.renewal(req, tx)
	if !ok {
		return
	}
	if agreed == nil {
		ours := *l.told
		ours.Direction = l.wanted(sdp.SendRecv)
		l.tell(&ours)
		WithSDP(res, l.told)
	}
	ack := l.repeat(tx, res)
	switch {
	case ack == nil:
		l.end(media.Failure, true)
	case agreed == nil: // the answer to our offer comes with the ACK
		if theirs, there, err := Description(ack); err == nil && there {
			if agreed, err := Agree(l.session, theirs, l.wish); err == nil {
				l.session.Start(l.params(agreed))
			}
		}
	}
}

// answerUpdate answers an UPDATE within the call (RFC 3311).
func (l *Leg) answerUpdate(req *sip.Request, tx sip.ServerTransaction) {
	leave, ok := l.turn(req, tx)
	if !ok {
		return
	}
	defer leave()
	if res, _, ok := l.renewal(req, tx); ok {
		l.endpoint.Note(res, req.Source())
		_ = tx.Respond(res) // where it is lost, the request comes once more
	}
}

// renewal answers what re-INVITE and UPDATE have in common: timers, the peer's
// target, and its offer, where there is one; agreed is nil where not. It is
// false where the request was refused.
func (l *Leg) renewal(req *sip.Request, tx sip.ServerTransaction) (res *sip.Response, agreed *sdp.Agreement, ok bool) {
	if !l.dialog.Receive(req.CSeq().SeqNo) {
		l.endpoint.Respond(tx, req, 500, "Out Of Order")
		return nil, nil, false
	}
	theirs, offered, err := Description(req)
	if err == nil && offered {
		var a sdp.Agreement
		a, err = Agree(l.session, theirs, l.wish)
		agreed = &a
	}
	if err != nil {
		l.endpoint.Respond(tx, req, 488, "Not Acceptable Here")
		return nil, nil, false
	}
	headers, term, ok := l.term(req, tx)
	if !ok {
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
		ours := sdp.Answer(l.session.Local(), l.told.Origin, *agreed)
		ours.Direction = l.wanted(ours.Direction)
		l.tell(ours)
		l.session.Start(l.params(*agreed))
		WithSDP(res, l.told)
	}
	l.agreeTerm(term)
	return res, agreed, true
}

// tell makes d, whose origin is that of what was told last, what we tell. Its
// version goes up only where it says something new (RFC 3264 section 8).
func (l *Leg) tell(d *sdp.Description) {
	if !bytes.Equal(d.Bytes(), l.told.Bytes()) {
		d.Origin.Version++
	}
	l.told = d
}

// wanted is a direction that the peer allows, less what we hold.
func (l *Leg) wanted(d sdp.Direction) sdp.Direction {
	switch {
	case !l.hold.Load():
		return d
	case d == sdp.SendRecv:
		return sdp.SendOnly
	case d == sdp.RecvOnly:
		return sdp.Inactive
	default:
		return d
	}
}

// repeat sends a 2xx until its ACK comes.
func (l *Leg) repeat(tx sip.ServerTransaction, res *sip.Response) *sip.Request {
	l.endpoint.Note(res, res.Destination())
	return Repeat(tx, res, l.acks, l.ended)
}

// ACK takes the ACK of the leg's first answer. It is for who answered.
func (l *Leg) ACK() <-chan *sip.Request { return l.acks }
