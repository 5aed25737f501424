package endpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/timer"
)

// A Leg is an answered call: a media.Leg that also tells when each frame
// arrived. Neither a feed nor the media clock may hang it up.
type Leg struct {
	endpoint *Endpoint
	dialog   *dialog.Dialog
	session  *rtp.Session
	wish     sdp.Wish
	keys     media.KeyWay
	sign     Signer
	silent   bool
	answered time.Time

	acks  chan *sip.Request
	terms chan timer.Term // what was agreed on last, for who keeps the session
	refer chan notice     // what a REFER of ours came to

	renew chan struct{}    // full while an offer is pending
	ours  atomic.Bool      // that offer is ours
	told  *sdp.Description // what we told last; owned by the offer that is pending
	hold  atomic.Bool      // we hold the party
	knows map[string]bool  // methods that the peer allows

	mu    sync.Mutex
	cause media.Cause
	ended chan struct{}
}

// A Signer adds credentials to a request of ours within the call; nil adds none.
type Signer func(*sip.Request) error

// An Answered call is what a leg is made of.
type Answered struct {
	Dialog    *dialog.Dialog
	Session   *rtp.Session
	Agreement sdp.Agreement
	Told      *sdp.Description // our description
	Wish      sdp.Wish         // of our side
	Keys      media.KeyWay
	Term      timer.Term // how long the session lives
	Allow     []string   // methods that the peer allows
	Sign      Signer
	// Deaf leaves a BYE of the peer without a response, as a broken peer does.
	Deaf bool
}

// An Ending is how a leg ended.
type Ending struct {
	Cause media.Cause
	// Lasted is the time from the answer to the end.
	Lasted time.Duration
	// Bye is how long our BYE took to be answered, 0 where it was the peer's;
	// and Unanswered says that it never was.
	Bye        time.Duration
	Unanswered bool
	Stats      rtp.Stats
	Quality    media.Quality
}

// Establish makes a leg of an answered call. It takes over the session, and
// closes it where the endpoint is closing.
func (e *Endpoint) Establish(a Answered) (*Leg, error) {
	l := &Leg{
		endpoint: e, dialog: a.Dialog, session: a.Session, told: a.Told, wish: a.Wish, keys: a.Keys, silent: a.Deaf, sign: a.Sign, answered: time.Now(),
		acks: make(chan *sip.Request, 1), ended: make(chan struct{}), renew: make(chan struct{}, 1),
		terms: make(chan timer.Term, 1), refer: make(chan notice, noticesKept), knows: map[string]bool{},
	}
	for _, m := range a.Allow {
		l.knows[m] = true
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
	e.Go(func() { l.keep(a.Term) })
	return l, nil
}

// params are those of an agreement, once the call is answered.
func (l *Leg) params(a sdp.Agreement) rtp.Params {
	p := Early(a)
	p.InBand = l.keys == media.InBand
	p.Expired = func() {
		l.endpoint.Go(func() { l.end(media.MediaTimeout, true) })
	}
	if !a.Quiet && !l.hold.Load() { // a party on hold need not send
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

// Press implements media.Keypad.
func (l *Leg) Press(keys string) error { return l.session.Press(keys) }

// Dialog names the leg's dialog.
func (l *Leg) Dialog() dialog.Key { return l.dialog.Key() }

// Stats counts the leg's packets and frames.
func (l *Leg) Stats() rtp.Stats { return l.session.Stats() }

// Ended is closed when the leg has ended.
func (l *Leg) Ended() <-chan struct{} { return l.ended }

// Ladder implements media.Traced. It is empty where nobody follows the call.
func (l *Leg) Ladder(ctx context.Context) []media.Message {
	l.endpoint.mu.Lock()
	kept := l.endpoint.ladders[l.dialog.Key().CallID]
	l.endpoint.mu.Unlock()
	if kept == nil {
		return nil
	}
	select {
	case <-l.ended:
		return kept.Wait(ctx)
	default:
		return kept.Rungs()
	}
}

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
	e, key := l.endpoint, l.dialog.Key()
	e.mu.Lock()
	delete(e.legs, key)
	e.mu.Unlock()
	lasted := time.Since(l.answered)
	l.session.Close()
	close(l.ended)
	over := func() {
		end := Ending{Cause: c, Lasted: lasted, Stats: l.session.Stats()}
		if bye {
			began := time.Now()
			end.Unanswered = !e.Bye(l.dialog, l.sign)
			end.Bye = time.Since(began)
		}
		e.Forget(key.CallID)
		if e.Ended != nil {
			e.Ended(end)
		}
	}
	if !e.Go(over) {
		e.Forget(key.CallID)
	}
}

// Bye ends a dialog, and says whether the peer answered. It takes until then,
// or 32 seconds.
func (e *Endpoint) Bye(d *dialog.Dialog, sign Signer) bool {
	req := d.Request(sip.BYE)
	if sign != nil {
		if err := sign(req); err != nil {
			e.debug("bye", err)
		}
	}
	e.Sign(req)
	// Whatever the answer, the call is over; a challenge is not answered, for
	// it may come from the party rather than from the trunk.
	if _, err := e.Ask(context.Background(), req); err != nil {
		e.debug("bye", fmt.Errorf("unanswered: %w", err))
		return false
	}
	return true
}

func (e *Endpoint) debug(what string, err error) {
	if e.Log != nil && !errors.Is(err, ErrClosed) {
		e.Log.Debug(what, "err", err)
	}
}
