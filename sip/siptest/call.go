package siptest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/crypt"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/timer"
)

// A call is one INVITE while its script runs.
type call struct {
	carrier *Carrier
	req     *sip.Request
	tx      sip.ServerTransaction
	script  Script
	entry   *Entry
	in      Invite
	tag     string
	session *rtp.Session
	wish    sdp.Wish // encrypted where the caller is
	agreed  sdp.Agreement

	up         *leg.Leg      // once it is answered
	prack      chan struct{} // closed by the PRACK of a reliable response
	cancelled  chan struct{} // the transaction was cancelled
	cancelling chan struct{} // a CANCEL is coming, and will cross the answer
	crossed    chan struct{} // the answer has left
}

// invite runs the script of one INVITE.
func (c *Carrier) invite(req *sip.Request, tx sip.ServerTransaction) {
	in := read(req)
	k := &call{
		carrier: c, req: req, tx: tx, in: in, entry: c.journal.add(in), tag: sip.GenerateTagN(12),
		cancelled: make(chan struct{}), cancelling: make(chan struct{}), crossed: make(chan struct{}),
	}
	if !tx.OnCancel(func(*sip.Request) { close(k.cancelled) }) {
		return
	}
	if c.OnInvite != nil {
		c.OnInvite(in)
	}
	k.script = Script{Status: http.StatusOK}
	if c.Answer != nil {
		k.script = c.Answer(in)
	}
	if k.script.AnswerOnCancel {
		c.mu.Lock()
		c.pending[in.CallID] = k
		c.mu.Unlock()
	}
	defer k.forget()
	if k.script.Silent {
		k.pause(time.Minute)
		return
	}
	if k.challenged() {
		return
	}
	if err := k.offer(); err != nil {
		k.respond(http.StatusNotAcceptable, err.Error())
		return
	}
	if k.tooSmall() {
		k.session.Close()
		return
	}
	if k.script.Reliable && !k.reliable() || !k.ring() || !k.pause(k.script.After) {
		k.over()
		return
	}
	k.finish()
}

func (k *call) forget() {
	k.carrier.mu.Lock()
	defer k.carrier.mu.Unlock()
	if k.carrier.pending[k.in.CallID] == k {
		delete(k.carrier.pending, k.in.CallID)
	}
}

// challenged asks for credentials where they are wanted and missing.
func (k *call) challenged() bool {
	want := k.script.Challenge
	if want == nil {
		return false
	}
	ask, answer, status := "WWW-Authenticate", "Authorization", http.StatusUnauthorized
	if want.Proxy {
		ask, answer, status = "Proxy-Authenticate", "Proxy-Authorization", http.StatusProxyAuthRequired
	}
	c, stale := want.nonce(k.in)
	if h := k.req.GetHeader(answer); h != nil && want.Username != "" && !stale &&
		c.Verify(h.Value(), want.Username, string(want.Password), string(sip.INVITE)) {
		return false
	}
	value := fmt.Sprintf(`Digest realm=%q, nonce=%q`, c.Realm, c.Nonce)
	if want.Algorithm != "" {
		value += ", algorithm=" + want.Algorithm
	}
	if c.QOP {
		value += `, qop="auth"`
	}
	if stale {
		value += ", stale=true"
	}
	k.carrier.journal.note(k.entry, func(e *Entry) { e.Challenged = true })
	k.respond(status, "Who Are You", sip.NewHeader(ask, value))
	return true
}

// tooSmall refuses a session interval once.
func (k *call) tooSmall() bool {
	i := leg.Expires(k.req)
	if k.script.Small == 0 || i == nil || i.Length >= k.script.Small {
		return false
	}
	k.respond(422, "Session Interval Too Small", sip.NewHeader("Min-SE", timer.Interval{Length: k.script.Small}.String()))
	return true
}

// nonce is the challenge that an INVITE must answer, and whether it is a new
// one because the last went stale.
func (c *Challenge) nonce(in Invite) (out auth.Challenge, stale bool) {
	out = auth.Challenge{Realm: c.Realm, Nonce: "nonce-of-" + in.ID, Algorithm: c.Algorithm, QOP: !c.NoQOP}
	if c.Algorithm == "" {
		out.Algorithm = "MD5"
	}
	if c.Stale && in.Credentials {
		out.Nonce += "-fresh"
	}
	return out, c.Stale && in.Credentials && in.CSeq == 2
}

// offer takes the caller's offer and opens our media.
func (k *call) offer() error {
	theirs, there, err := leg.Description(k.req)
	if err != nil {
		return err
	}
	if !there {
		return errNoOffer
	}
	k.wish.Codecs = k.script.Codecs
	if theirs.Encrypted() {
		k.wish.Keys = crypt.New()
	}
	if k.agreed, err = sdp.Agree(theirs, k.wish); err != nil {
		return err
	}
	k.session, err = k.carrier.Media.Listen()
	return err
}

// ring tells the caller how it goes, and is false once the call is cancelled.
func (k *call) ring() bool {
	if k.script.Trying > 0 {
		if !k.pause(k.script.Trying) {
			return false
		}
		k.say(http.StatusContinue, "Trying", false)
	}
	if k.script.Ring < 0 {
		return true
	}
	for n := range max(1, k.script.Rings) {
		wait := k.script.RingEvery
		if n == 0 {
			wait = k.script.Ring
		}
		if !k.pause(wait) {
			return false
		}
		if k.script.EarlyMedia {
			k.session.Start(leg.Early(k.agreed))
			k.say(183, "Session Progress", true)
		} else {
			k.say(180, "Ringing", false)
		}
		if n > 0 {
			continue
		}
		k.carrier.journal.note(k.entry, func(e *Entry) { e.Rang, e.RangAt = true, time.Now() })
		if k.carrier.OnRing != nil {
			k.carrier.OnRing(k.in)
		}
	}
	return true
}

// pause is false where the call was cancelled meanwhile.
func (k *call) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-k.cancelled:
		return false
	case <-k.carrier.endpoint.Closing():
		return false
	case <-k.cancelling:
		return true
	case <-timer.C:
	}
	select {
	case <-k.cancelled:
		return false
	default:
		return true
	}
}

// say sends a provisional response.
func (k *call) say(status int, reason string, describe bool) {
	res := k.response(status, reason)
	if describe {
		k.describe(res)
	}
	_ = k.tx.Respond(res) // where the transaction is gone, so is the call
}

func (k *call) describe(res *sip.Response) {
	leg.WithSDP(res, sdp.Answer(k.session.Local(), sdp.Origin{ID: 1, Version: 1}, k.agreed))
}

// response builds a response of this phone.
func (k *call) response(status int, reason string) *sip.Response {
	res := sip.NewResponseFromRequest(k.req, status, reason, nil)
	if status > 100 {
		res.To().Params.Add("tag", k.tag)
		res.AppendHeader(k.carrier.endpoint.Contact(k.req.Transport()))
	}
	return res
}

// respond sends a refusal.
func (k *call) respond(status int, reason string, headers ...sip.Header) {
	k.carrier.endpoint.Respond(k.tx, k.req, status, reason, headers...)
	k.carrier.journal.note(k.entry, func(e *Entry) { e.Status, e.EndedAt = status, time.Now() })
}

// over ends a call that was cancelled, or that the carrier's closing ends.
func (k *call) over() {
	if k.session != nil {
		k.session.Close()
	}
	select {
	case <-k.cancelled:
		k.carrier.journal.note(k.entry, func(e *Entry) {
			e.Cancelled, e.Status, e.Cause, e.EndedAt = true, 487, media.Cancelled, time.Now()
		})
	default:
		k.respond(http.StatusServiceUnavailable, "Closing")
	}
}

// finish gives the final answer.
func (k *call) finish() {
	switch s := k.script.Status; s {
	case 0:
		for k.pause(time.Minute) {
			select {
			case <-k.cancelling:
				k.answer()
				return
			default:
			}
		}
		k.over()
	case http.StatusOK:
		k.answer()
	default:
		k.session.Close()
		var headers []sip.Header
		for name, value := range k.script.Headers {
			headers = append(headers, sip.NewHeader(name, value))
		}
		reason := k.script.Reason
		if reason == "" {
			reason = "Refused"
		}
		k.respond(s, reason, headers...)
	}
}
