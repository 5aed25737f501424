package endpoint

import (
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
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

// Description reads the session description of a message, which may have none.
func Description(msg interface {
	ContentType() *sip.ContentTypeHeader
	Body() []byte
},
) (d *sdp.Description, there bool, err error) {
	if !isSDP(msg) {
		return nil, false, nil
	}
	d, err = sdp.Parse(msg.Body())
	return d, true, err
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

// reinvite answers an offer, or a wish for one, within the call.
func (l *Leg) reinvite(req *sip.Request, tx sip.ServerTransaction) {
	select {
	case l.renew <- struct{}{}:
		defer func() { <-l.renew }()
	case <-time.After(overlap): // RFC 3261 section 14.2
		l.endpoint.Respond(tx, req, 500, "Request Pending", sip.NewHeader("Retry-After", "5"))
		return
	}
	if !l.dialog.Receive(req.CSeq().SeqNo) {
		l.endpoint.Respond(tx, req, 500, "Out Of Order")
		return
	}
	theirs, offered, err := Description(req)
	var agreed sdp.Agreement
	if err == nil && offered {
		agreed, err = Agree(l.session, theirs, l.wish)
	}
	if err != nil {
		l.endpoint.Respond(tx, req, 488, "Not Acceptable Here")
		return
	}
	l.dialog.Retarget(req.Contact())
	l.origin.Version++
	ours := sdp.Offer(l.session.Local(), l.origin, l.wish)
	if offered {
		ours = sdp.Answer(l.session.Local(), l.origin, agreed)
		l.session.Start(l.params(agreed))
	}
	res := sip.NewResponseFromRequest(req, 200, "OK", nil)
	res.AppendHeader(l.endpoint.Contact(l.dialog.Transport()))
	WithSDP(res, ours)
	ack := Repeat(tx, res, l.acks, l.ended)
	switch {
	case ack == nil:
		l.end(media.Failure, true)
	case !offered: // the answer to our offer comes with the ACK
		if theirs, there, err := Description(ack); err == nil && there {
			if agreed, err := Agree(l.session, theirs, l.wish); err == nil {
				l.session.Start(l.params(agreed))
			}
		}
	}
}

// ACK takes the ACK of the leg's first answer. It is for who answered.
func (l *Leg) ACK() <-chan *sip.Request { return l.acks }
