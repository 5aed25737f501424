// Package leg is a call that was answered: its media, and what is asked within
// its dialog: offers and answers, session timers, keys, transfers, and its end.
package leg

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
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/ladder"
	"github.com/parley-voice/parley/sip/timer"
)

// A Leg is an answered call: a media.Leg that also tells when each frame
// arrived. Neither a feed nor the media clock may hang it up.
type Leg struct {
	endpoint *endpoint.Endpoint
	rules    Rules
	dialog   *dialog.Dialog
	session  *rtp.Session
	wish     sdp.Wish
	keys     media.KeyWay
	sign     Signer
	silent   bool
	ladder   *ladder.Ladder // nil where nobody follows the call
	answered time.Time

	acks    chan *sip.Request
	lives   atomic.Pointer[timer.Term] // of the session
	atLeast atomic.Int64               // that both sides take for it, in nanoseconds
	terms   chan timer.Term            // what was agreed on last, for who keeps the session
	handed  atomic.Bool                // a REFER of ours was taken
	refer   chan notice                // what a REFER of ours came to

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

// Rules are what holds for all legs of a user agent.
type Rules struct {
	// FirstWithin and Within are how long the party may send no media, in the
	// beginning and later; 0 is for ever.
	FirstWithin, Within time.Duration
	// Least is the shortest session interval that is taken (RFC 4028); 0 is
	// the 90 s that everybody takes.
	Least time.Duration
	// Up, where set, counts the legs that are up.
	Up *atomic.Int64
	// Ended is told of each leg that has ended, after its BYE was answered; nil
	// is not.
	Ended func(Ending)
}

// An Answered call is what a leg is made of.
type Answered struct {
	Dialog    *dialog.Dialog
	Session   *rtp.Session
	Agreement sdp.Agreement
	Told      *sdp.Description // our description
	Wish      sdp.Wish         // of our side
	Keys      media.KeyWay
	Term      timer.Term    // how long the session lives
	Least     time.Duration // that the peer takes for a session; 0 where it said nothing
	Allow     []string      // methods that the peer allows
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
func Establish(e *endpoint.Endpoint, a Answered, rules Rules) (*Leg, error) {
	l := &Leg{
		endpoint: e, rules: rules, dialog: a.Dialog, session: a.Session, told: a.Told, wish: a.Wish, keys: a.Keys, silent: a.Deaf, ladder: e.Ladder(a.Dialog.Key().CallID), sign: a.Sign, answered: time.Now(),
		acks: make(chan *sip.Request, 1), ended: make(chan struct{}), renew: make(chan struct{}, 1),
		terms: make(chan timer.Term, 1), refer: make(chan notice, noticesKept), knows: map[string]bool{},
	}
	for _, m := range a.Allow {
		l.knows[m] = true
	}
	if !e.Enter(a.Dialog.Key(), l) {
		a.Session.Close()
		return nil, endpoint.ErrClosed
	}
	if rules.Up != nil {
		rules.Up.Add(1)
	}
	l.session.Start(l.params(a.Agreement))
	l.lives.Store(&a.Term)
	l.atLeast.Store(int64(max(a.Least, l.least())))
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
	// Whoever is on hold, or holds us, need not send, whatever it said.
	if !a.Quiet && !a.Mute && !l.hold.Load() {
		p.FirstWithin, p.Within = l.rules.FirstWithin, l.rules.Within
	}
	return p
}

// Early are the media parameters of an agreement before the call is answered.
func Early(a sdp.Agreement) rtp.Params {
	return rtp.Params{
		Remote: a.Remote, Codec: a.Codec, PayloadType: a.PayloadType, KeyType: a.KeyType, ComfortType: a.ComfortType,
		Others: a.Others, KeyAlias: a.KeyAlias, Ptime: a.Ptime, RTCP: a.RTCP, Mux: a.Mux, Mute: a.Mute, Ours: a.Ours, Theirs: a.Theirs,
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

// Quality implements media.Gauge.
func (l *Leg) Quality() media.Quality { return l.session.Quality() }

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
	kept := l.ladder
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
	e.Leave(key, l)
	if l.rules.Up != nil {
		l.rules.Up.Add(-1)
	}
	lasted := time.Since(l.answered)
	l.session.Close()
	close(l.ended)
	over := func() {
		end := Ending{Cause: c, Lasted: lasted, Stats: l.session.Stats(), Quality: l.session.Quality()}
		if bye {
			began := time.Now()
			end.Unanswered = !Bye(e, l.dialog, l.sign)
			end.Bye = time.Since(began)
		}
		e.Forget(key.CallID)
		if l.rules.Ended != nil {
			l.rules.Ended(end)
		}
	}
	if !e.Go(over) {
		e.Forget(key.CallID)
	}
}

// byes is how often a BYE is sent that the peer answers with 500: another
// request of ours, with a higher number, may have overtaken it (RFC 3261
// section 12.2.2).
const byes = 3

// Bye ends a dialog, and says whether the peer answered. It takes until then,
// or 32 seconds.
func Bye(e *endpoint.Endpoint, d *dialog.Dialog, sign Signer) bool {
	for range byes {
		req := d.Request(sip.BYE)
		if sign != nil {
			if err := sign(req); err != nil {
				e.Debug("bye", err)
			}
		}
		res, err := ask(context.Background(), e, d, req)
		if err != nil {
			e.Debug("bye", fmt.Errorf("unanswered: %w", err))
			return false
		}
		// Whatever else the answer, the call is over; a challenge is not
		// answered, for it may come from the party rather than from the trunk.
		if res.StatusCode != 500 {
			break
		}
	}
	return true
}

// ask sends a request within the call to where the peer wants it, and where
// that leads nowhere, to where the INVITE went. It signs it.
func ask(ctx context.Context, e *endpoint.Endpoint, d *dialog.Dialog, req *sip.Request) (*sip.Response, error) {
	e.Sign(req)
	res, err := e.Ask(ctx, req)
	if !errors.Is(err, endpoint.ErrUnsent) || ctx.Err() != nil || !d.Reroute(req) {
		return res, err
	}
	e.Sign(req)
	return e.Ask(ctx, req)
}

// Ack signs an ACK and sends it, as ask does.
func Ack(e *endpoint.Endpoint, d *dialog.Dialog, ack *sip.Request) error {
	e.Sign(ack)
	err := e.Write(ack)
	if err == nil || !d.Reroute(ack) {
		return err
	}
	e.Sign(ack)
	return e.Write(ack)
}

// Ask sends a request of another kind within the call, with a body where kind
// names its type, and returns its final response.
func (l *Leg) Ask(ctx context.Context, method sip.RequestMethod, kind, body string, headers ...sip.Header) (*sip.Response, error) {
	req := l.dialog.Request(method)
	for _, h := range headers {
		req.AppendHeader(h)
	}
	if kind != "" {
		c := sip.ContentTypeHeader(kind)
		req.AppendHeader(&c)
		req.SetBody([]byte(body))
	}
	return l.ask(ctx, req)
}

// ask sends a request of ours with credentials.
func (l *Leg) ask(ctx context.Context, req *sip.Request) (*sip.Response, error) {
	if l.sign != nil {
		if err := l.sign(req); err != nil {
			return nil, err
		}
	}
	return ask(ctx, l.endpoint, l.dialog, req)
}

// Serve implements endpoint.Party.
func (l *Leg) Serve(req *sip.Request, tx sip.ServerTransaction) {
	switch req.Method {
	case sip.INVITE:
		l.reinvite(req, tx)
	case sip.ACK:
		l.acknowledged(req)
	case sip.BYE:
		l.bye(req, tx)
	case sip.UPDATE:
		l.answerUpdate(req, tx)
	case sip.INFO:
		l.info(req, tx)
	case sip.NOTIFY:
		l.notify(req, tx)
	default:
		l.endpoint.Respond(tx, req, 405, "Method Not Allowed")
	}
}

func (l *Leg) bye(req *sip.Request, tx sip.ServerTransaction) {
	// Whatever its number: for the peer the call is over. Ended before it is answered, so that no BYE of ours crosses this one.
	cause := media.RemoteHangup
	if l.handed.Load() { // whoever takes a REFER may hang up at once
		cause = media.Transferred
	}
	l.end(cause, false)
	if !l.silent {
		l.endpoint.Respond(tx, req, 200, "OK")
	}
}

// acknowledged hands an ACK to whoever repeats an answer.
func (l *Leg) acknowledged(req *sip.Request) {
	for {
		select {
		case l.acks <- req:
			return
		default:
		}
		select { // the newest takes the place of one that nobody took
		case <-l.acks:
		default:
		}
	}
}
