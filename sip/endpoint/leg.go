package endpoint

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
)

// A Leg is an answered call: a media.Leg that also tells when each frame
// arrived. Neither a feed nor the media clock may hang it up.
type Leg struct {
	endpoint *Endpoint
	dialog   *dialog.Dialog
	session  *rtp.Session
	wish     sdp.Wish
	origin   sdp.Origin // of what we told last; owned by the re-INVITE in progress
	acks     chan *sip.Request
	renew    chan struct{} // full while a re-INVITE is answered
	silent   bool

	mu    sync.Mutex
	cause media.Cause
	ended chan struct{}
}

// An Answered call is what a leg is made of.
type Answered struct {
	Dialog    *dialog.Dialog
	Session   *rtp.Session
	Agreement sdp.Agreement
	Origin    sdp.Origin // of our description
	Wish      sdp.Wish   // of our side
	// Deaf leaves a BYE of the peer without a response, as a broken peer does.
	Deaf bool
}

// Establish makes a leg of an answered call. It takes over the session, and
// closes it where the endpoint is closing.
func (e *Endpoint) Establish(a Answered) (*Leg, error) {
	l := &Leg{
		endpoint: e, dialog: a.Dialog, session: a.Session, wish: a.Wish, origin: a.Origin, silent: a.Deaf,
		acks: make(chan *sip.Request, 1), ended: make(chan struct{}), renew: make(chan struct{}, 1),
	}
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		a.Session.Close()
		return nil, ErrClosed
	}
	e.legs[a.Dialog.Key()] = l
	e.mu.Unlock()
	l.session.Start(l.params(a.Agreement))
	return l, nil
}

// params are those of an agreement, once the call is answered.
func (l *Leg) params(a sdp.Agreement) rtp.Params {
	p := Early(a)
	p.Expired = func() {
		l.endpoint.Go(func() { l.end(media.MediaTimeout, true) })
	}
	if !a.Quiet { // a party on hold need not send
		p.FirstWithin, p.Within = l.endpoint.FirstWithin, l.endpoint.Within
	}
	return p
}

// Early are the media parameters of an agreement before the call is answered.
func Early(a sdp.Agreement) rtp.Params {
	return rtp.Params{
		Remote: a.Remote, Codec: a.Codec, PayloadType: a.PayloadType, KeyType: a.KeyType, ComfortType: a.ComfortType,
		Ptime: a.Ptime, Mute: a.Mute, Ours: a.Ours, Theirs: a.Theirs,
	}
}

// Rate implements media.Source.
func (l *Leg) Rate() int { return l.session.Rate() }

// ReadFrame implements media.Source.
func (l *Leg) ReadFrame(f media.Frame) error { return l.session.ReadFrame(f) }

// Arrived implements media.Arrival.
func (l *Leg) Arrived() (time.Time, bool) { return l.session.Arrived() }

// Play implements media.Leg.
func (l *Leg) Play(feed media.Feed) { l.session.Play(feed) }

// Digits implements media.Leg.
func (l *Leg) Digits() <-chan rune { return l.session.Digits() }

// Dialog names the leg's dialog.
func (l *Leg) Dialog() dialog.Key { return l.dialog.Key() }

// Stats counts the leg's packets and frames.
func (l *Leg) Stats() rtp.Stats { return l.session.Stats() }

// Ended is closed when the leg has ended.
func (l *Leg) Ended() <-chan struct{} { return l.ended }

// Cause implements media.Line.
func (l *Leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Hangup implements media.Line. It returns at once; the endpoint sees to the
// BYE and waits for its answer.
func (l *Leg) Hangup(c media.Cause) error {
	if c == "" {
		c = media.LocalHangup
	}
	l.end(c, true)
	return nil
}

// Abandon ends a leg whose answer never became a call: without a BYE.
func (l *Leg) Abandon(c media.Cause) { l.end(c, false) }

// end ends the leg once, with a BYE where it is ours to send.
func (l *Leg) end(c media.Cause, bye bool) {
	l.mu.Lock()
	if l.cause != "" {
		l.mu.Unlock()
		return
	}
	l.cause = c
	l.mu.Unlock()
	l.endpoint.mu.Lock()
	delete(l.endpoint.legs, l.dialog.Key())
	l.endpoint.mu.Unlock()
	if bye {
		l.endpoint.Go(func() { l.endpoint.Bye(l.dialog) })
	}
	l.session.Close()
	close(l.ended)
}

// Bye ends a dialog. It takes until the peer's answer, or 32 seconds.
func (e *Endpoint) Bye(d *dialog.Dialog) {
	req := d.Request(sip.BYE)
	e.Sign(req)
	// Whatever the answer, the call is over; a challenge is not answered, for
	// it may come from the party rather than from the trunk.
	if _, err := e.Ask(context.Background(), req); err != nil && e.Log != nil {
		e.Log.Debug("bye", "err", fmt.Errorf("unanswered: %w", err))
	}
}
