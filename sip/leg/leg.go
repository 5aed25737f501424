// Package leg runs an answered call: its media, and the requests within its
// dialog: offers and answers, session timers, keys, transfers and BYE.
package leg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/latch"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/endpoint"
	"github.com/parley-voice/parley/sip/siptrace"
)

// A Leg is an answered call. It implements media.Leg and media.Arrival. Do not call Hangup from a feed or on the
// goroutine of the media clock, because Hangup waits until neither uses the session.
type Leg struct {
	endpoint   *endpoint.Endpoint
	settings   Settings
	dialog     *dialog.Dialog
	session    *rtp.Session
	keys       media.KeyMode
	authorize  Authorizer
	ignoreBye  bool
	ladder     *siptrace.Ladder // trace of the call; nil if the call is not traced
	answeredAt time.Time

	acks     chan *sip.Request
	offers   negotiator
	timer    *sessionTimer
	transfer transfer

	mu    sync.Mutex
	cause media.Cause
	ended chan struct{}
}

// An Authorizer adds credentials to a request within the call. A nil Authorizer
// adds none.
type Authorizer func(*sip.Request) error

// Settings apply to all legs of a user agent.
type Settings struct {
	// FirstMedia and MediaGap are how long the peer may send no media at the
	// start and later; 0 means no limit.
	FirstMedia, MediaGap time.Duration
	// ReportGap replaces MediaGap while RTCP reports arrive.
	ReportGap time.Duration
	// MinSession is the shortest session interval accepted (RFC 4028); 0 means
	// 90 s.
	MinSession time.Duration
	// Active counts the legs that have not ended; nil counts none.
	Active *atomic.Int64
	// OnEnded receives the result of each leg after its BYE was answered; nil is
	// skipped.
	OnEnded func(Ending)
}

// Config describes an answered call.
type Config struct {
	Dialog    *dialog.Dialog
	Session   *rtp.Session
	Agreement sdp.Agreement
	LocalSDP  *sdp.Description
	Wish      sdp.Capabilities
	Keys      media.KeyMode
	Expected  latch.ExpectedSources // addresses that the peer named
	// FirstMedia and MediaGap override those of Settings if not 0.
	FirstMedia, MediaGap time.Duration

	Timer      dialog.RefreshSchedule
	MinSession time.Duration // shortest session interval that the peer accepts; 0 if unknown
	Allow      []string      // methods that the peer allows
	Authorize  Authorizer
	// IgnoreBye sends no response to a BYE, to simulate a broken peer.
	IgnoreBye bool
}

// An Ending describes how a leg ended.
type Ending struct {
	Cause    media.Cause
	Duration time.Duration // from the answer to the end
	// ByeDelay is the time until our BYE was answered, or 0 if the peer sent the
	// BYE. IsByeUnanswered reports that ours got no response.
	ByeDelay        time.Duration
	IsByeUnanswered bool
	Stats           rtp.Stats
	Quality         media.Quality
}

// New starts the leg of an answered call. It takes ownership of the session, and
// closes it if the endpoint is closing.
func New(e *endpoint.Endpoint, c Config, settings Settings) (*Leg, error) {
	l := &Leg{
		endpoint: e, settings: settings, dialog: c.Dialog, session: c.Session, keys: c.Keys, authorize: c.Authorize, ignoreBye: c.IgnoreBye,
		ladder: e.Ladder(c.Dialog.Key().CallID), answeredAt: time.Now(),
		acks: make(chan *sip.Request, 1), ended: make(chan struct{}),
		timer:    newSessionTimer(settings.MinSession, c.MinSession, c.Timer),
		transfer: transfer{notifies: make(chan notify, maxNotifies)},
	}
	l.offers = negotiator{
		leg: l, wish: c.Wish, expected: c.Expected, local: c.LocalSDP, pending: make(chan struct{}, 1),
		allowsUpdate: slices.Contains(c.Allow, string(sip.UPDATE)),
	}
	if !e.AddDialog(c.Dialog.Key(), l) {
		c.Session.Close()
		return nil, endpoint.ErrClosed
	}
	if settings.Active != nil {
		settings.Active.Add(1)
	}
	l.settings.FirstMedia, l.settings.MediaGap = cmp.Or(c.FirstMedia, settings.FirstMedia), cmp.Or(c.MediaGap, settings.MediaGap)
	l.session.Start(l.params(c.Agreement))
	e.Go(func() { l.refresh(c.Timer) })
	return l, nil
}

// params returns the media parameters of an agreement for the answered call.
func (l *Leg) params(a sdp.Agreement) rtp.Params {
	p := EarlyParams(a, l.offers.expected)
	p.InBand = l.keys == media.InBand
	p.OnTimeout = func() {
		l.endpoint.Go(func() { l.end(media.MediaTimeout, true) })
	}
	// A side on hold need not send media.
	if !a.RemoteMuted && !a.Mute && !l.offers.onHold.Load() {
		p.FirstPacketTimeout, p.SilenceTimeout, p.ReportedTimeout = l.settings.FirstMedia, l.settings.MediaGap, l.settings.ReportGap
	}
	return p
}

// EarlyParams returns the media parameters of an agreement before the answer.
func EarlyParams(a sdp.Agreement, expected latch.ExpectedSources) rtp.Params {
	return rtp.Params{
		Remote: a.Remote, Expected: expected, Codec: a.Codec, PayloadType: a.PayloadType, KeyType: a.KeyType, ComfortType: a.ComfortType,
		Others: a.Others, KeyAlias: a.KeyAlias, Ptime: a.Ptime, RTCP: a.RTCP, Mux: a.Mux, Mute: a.Mute,
		LocalKey: a.LocalKey, RemoteKey: a.RemoteKey,
	}
}

// maxSignaling bounds the signaling addresses kept for a call.
const maxSignaling = 8

// AddSource returns expected with the address of a signaling message, "ip:port".
func AddSource(expected latch.ExpectedSources, source string) latch.ExpectedSources {
	from, err := netip.ParseAddrPort(source)
	if err != nil || slices.Contains(expected.Signaling, from.Addr().Unmap()) || len(expected.Signaling) == maxSignaling {
		return expected
	}
	expected.Signaling = append(slices.Clone(expected.Signaling), from.Addr().Unmap())
	return expected
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

// Quality implements media.QualityReporter.
func (l *Leg) Quality() media.Quality { return l.session.Quality() }

// Press implements media.Keypad.
func (l *Leg) Press(keys string) error { return l.session.Press(keys) }

// DialogKey identifies the leg's dialog.
func (l *Leg) DialogKey() dialog.Key { return l.dialog.Key() }

// Stats returns the packet and frame counts.
func (l *Leg) Stats() rtp.Stats { return l.session.Stats() }

// Ended is closed when the leg has ended.
func (l *Leg) Ended() <-chan struct{} { return l.ended }

// Ladder implements media.SignalingTracer. It is empty if the call is not traced.
func (l *Leg) Ladder(ctx context.Context) []media.Message {
	ladder := l.ladder
	if ladder == nil {
		return nil
	}
	select {
	case <-l.ended:
		return ladder.Wait(ctx)
	default:
		return ladder.Messages()
	}
}

// Cause implements media.Connection.
func (l *Leg) Cause() media.Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Hangup implements media.Connection. It does not block; the endpoint's Close waits for
// the answer to the BYE.
func (l *Leg) Hangup(c media.Cause) error {
	if c == "" {
		c = media.LocalHangup
	}
	l.end(c, true)
	return nil
}

// Abandon ends a leg without a BYE, since its answer was never acknowledged.
func (l *Leg) Abandon(c media.Cause) { l.end(c, false) }

func (l *Leg) end(c media.Cause, bye bool) {
	l.mu.Lock()
	if l.cause != "" {
		l.mu.Unlock()
		return
	}
	l.cause = c
	l.mu.Unlock()
	e, key := l.endpoint, l.dialog.Key()
	e.RemoveDialog(key, l)
	if l.settings.Active != nil {
		l.settings.Active.Add(-1)
	}
	duration := time.Since(l.answeredAt)
	l.session.Close()
	close(l.ended)
	finish := func() {
		end := Ending{Cause: c, Duration: duration, Stats: l.session.Stats(), Quality: l.session.Quality()}
		if bye {
			start := time.Now()
			end.IsByeUnanswered = !SendBye(e, l.dialog, l.authorize)
			end.ByeDelay = time.Since(start)
		}
		e.EndTrace(key.CallID)
		if l.settings.OnEnded != nil {
			l.settings.OnEnded(end)
		}
	}
	if !e.Go(finish) {
		e.EndTrace(key.CallID)
	}
}

// maxByes bounds the BYEs sent to a peer that answers with 500: a request with a
// higher CSeq may have overtaken the BYE (RFC 3261 section 12.2.2).
const maxByes = 3

// SendBye ends a dialog and reports whether the peer answered. It blocks until
// then, or for 32 s.
func SendBye(e *endpoint.Endpoint, d *dialog.Dialog, authorize Authorizer) bool {
	for range maxByes {
		req := d.Request(sip.BYE)
		if authorize != nil {
			if err := authorize(req); err != nil {
				e.Debug("bye", err)
			}
		}
		res, err := Do(context.Background(), e, d, req)
		if err != nil {
			e.Debug("bye", fmt.Errorf("unanswered: %w", err))
			return false
		}
		// Any other response ends the call, too. A challenge is not answered, because it may come from
		// the callee instead of the trunk.
		if res.StatusCode != 500 {
			break
		}
	}
	return true
}

// Do finalizes and sends a request within a dialog, and returns its final
// response. If nothing could be sent to the remote target, it sends the request
// to the address of the INVITE.
func Do(ctx context.Context, e *endpoint.Endpoint, d *dialog.Dialog, req *sip.Request) (*sip.Response, error) {
	e.Finalize(req)
	res, err := e.Do(ctx, req)
	if !errors.Is(err, endpoint.ErrUnsent) || ctx.Err() != nil || !d.Reroute(req) {
		return res, err
	}
	e.Finalize(req)
	return e.Do(ctx, req)
}

// SendACK finalizes and sends an ACK, with the fallback of Do.
func SendACK(e *endpoint.Endpoint, d *dialog.Dialog, ack *sip.Request) error {
	e.Finalize(ack)
	err := e.SendACK(ack)
	if err == nil || !d.Reroute(ack) {
		return err
	}
	e.Finalize(ack)
	return e.SendACK(ack)
}

// Request sends a request within the call and returns its final response. It has
// a body if contentType is not empty.
func (l *Leg) Request(
	ctx context.Context, method sip.RequestMethod, contentType, body string, headers ...sip.Header,
) (*sip.Response, error) {
	req := l.dialog.Request(method)
	for _, h := range headers {
		req.AppendHeader(h)
	}
	if contentType != "" {
		c := sip.ContentTypeHeader(contentType)
		req.AppendHeader(&c)
		req.SetBody([]byte(body))
	}
	return l.do(ctx, req)
}

func (l *Leg) do(ctx context.Context, req *sip.Request) (*sip.Response, error) {
	if l.authorize != nil {
		if err := l.authorize(req); err != nil {
			return nil, err
		}
	}
	return Do(ctx, l.endpoint, l.dialog, req)
}

// CheckCSeq implements endpoint.DialogHandler.
func (l *Leg) CheckCSeq(cseq uint32) bool { return l.dialog.CheckCSeq(cseq) }

// Serve implements endpoint.DialogHandler.
func (l *Leg) Serve(req *sip.Request, tx sip.ServerTransaction) {
	switch req.Method {
	case sip.INVITE:
		l.offers.onReinvite(req, tx)
	case sip.ACK:
		l.onACK(req)
	case sip.BYE:
		l.onBye(req, tx)
	case sip.UPDATE:
		l.offers.onUpdate(req, tx)
	case sip.INFO:
		l.onInfo(req, tx)
	case sip.NOTIFY:
		l.onNotify(req, tx)
	default:
		l.endpoint.Respond(tx, req, 405, "Method Not Allowed")
	}
}

func (l *Leg) onBye(req *sip.Request, tx sip.ServerTransaction) {
	// A BYE of any CSeq ends the call. The leg ends before the response is sent, so that our own
	// BYE does not cross the peer's.
	cause := media.RemoteHangup
	if l.transfer.started.Load() { // a peer that accepts a REFER may hang up at once
		cause = media.Transferred
	}
	l.end(cause, false)
	if !l.ignoreBye {
		l.endpoint.Respond(tx, req, 200, "OK")
	}
}

// onACK passes an ACK to the retransmission of a 2xx.
func (l *Leg) onACK(req *sip.Request) { replace(l.acks, req) }

// replace sends v on a channel of capacity 1, instead of a value that was not
// received.
func replace[T any](c chan T, v T) {
	for {
		select {
		case c <- v:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}
