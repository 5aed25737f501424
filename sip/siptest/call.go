package siptest

import (
	"fmt"
	"net/http"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/latch"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/media/srtp"
	"github.com/parley-voice/parley/sip/auth"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/leg"
)

type call struct {
	carrier *Carrier
	req     *sip.Request
	tx      sip.ServerTransaction
	script  Script
	entry   *Entry
	in      Invite
	tag     string
	session *rtp.Session
	wish    sdp.Capabilities // media is encrypted if the offer is
	agreed  sdp.Agreement

	leg       *leg.Leg      // leg of the call once it is answered
	prack     chan struct{} // closed when a PRACK arrives
	canceled  chan struct{} // closed when the transaction is canceled
	canceling chan struct{} // closed when a CANCEL arrives; the answer must cross it
	crossed   chan struct{} // closed when the answer was sent
}

func (c *Carrier) onInvite(req *sip.Request, tx sip.ServerTransaction) {
	in := readInvite(req)
	k := &call{
		carrier: c, req: req, tx: tx, in: in, entry: c.journal.add(in), tag: sip.GenerateTagN(12),
		canceled: make(chan struct{}), canceling: make(chan struct{}), crossed: make(chan struct{}),
	}
	if !tx.OnCancel(func(*sip.Request) { close(k.canceled) }) {
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
	defer k.removePending()
	if k.script.Silent {
		k.pause(time.Minute)
		return
	}
	if k.challenge() {
		return
	}
	if err := k.offer(); err != nil {
		k.respond(http.StatusNotAcceptable, err.Error())
		return
	}
	if k.refuseInterval() {
		k.session.Close()
		return
	}
	if k.script.Reliable && !k.sendReliable() || !k.ring() || !k.pause(k.script.After) {
		k.endEarly()
		return
	}
	k.finish()
}

func (k *call) removePending() {
	k.carrier.mu.Lock()
	defer k.carrier.mu.Unlock()
	if k.carrier.pending[k.in.CallID] == k {
		delete(k.carrier.pending, k.in.CallID)
	}
}

func (k *call) challenge() bool {
	want := k.script.Challenge
	if want == nil {
		return false
	}
	headerName, answer, status := "WWW-Authenticate", "Authorization", http.StatusUnauthorized
	if want.Proxy {
		headerName, answer, status = "Proxy-Authenticate", "Proxy-Authorization", http.StatusProxyAuthRequired
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
	k.carrier.journal.update(k.entry, func(e *Entry) { e.Challenged = true })
	k.respond(status, "Unauthorized", sip.NewHeader(headerName, value))
	return true
}

// refuseInterval answers 422 to a session interval that is too short.
func (k *call) refuseInterval() bool {
	i := leg.SessionExpires(k.req)
	if k.script.MinSession == 0 || i == nil || i.Length >= k.script.MinSession {
		return false
	}
	k.respond(422, "Session Interval Too Small", sip.NewHeader("Min-SE", dialog.SessionExpires{Length: k.script.MinSession}.String()))
	return true
}

// nonce returns the nonce of the challenge, and whether the last one has become stale.
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

// offer negotiates the caller's offer and opens our media.
func (k *call) offer() error {
	remote, found, err := leg.ReadSDP(k.req)
	if err != nil {
		return err
	}
	if !found {
		return errNoOffer
	}
	k.wish.Codecs = k.script.Codecs
	if remote.IsEncrypted() {
		k.wish.Keys = srtp.New()
	}
	if k.agreed, err = sdp.Agree(remote, k.wish); err != nil {
		return err
	}
	k.session, err = k.carrier.Media.Listen()
	return err
}

// ring sends provisional responses. It returns false once the call is canceled.
func (k *call) ring() bool {
	if k.script.Trying > 0 {
		if !k.pause(k.script.Trying) {
			return false
		}
		k.sendProvisional(http.StatusContinue, "Trying", false)
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
			k.session.Start(leg.EarlyParams(k.agreed, latch.ExpectedSources{}))
			k.sendProvisional(183, "Session Progress", true)
		} else {
			k.sendProvisional(180, "Ringing", false)
		}
		if n > 0 {
			continue
		}
		k.carrier.journal.update(k.entry, func(e *Entry) { e.Rang, e.RangAt = true, time.Now() })
		if k.carrier.OnRing != nil {
			k.carrier.OnRing(k.in)
		}
	}
	return true
}

// pause returns false if the call was canceled.
func (k *call) pause(d time.Duration) bool {
	select {
	case <-k.canceled:
		return false
	case <-k.carrier.endpoint.Closing():
		return false
	case <-k.canceling:
		return true
	case <-time.After(d):
		return !isClosed(k.canceled)
	}
}

func (k *call) sendProvisional(status int, reason string, describe bool) {
	res := k.response(status, reason)
	if describe {
		k.describe(res)
	}
	_ = k.tx.Respond(res) // the call has ended if the transaction has
}

func (k *call) describe(res *sip.Response) {
	leg.SetSDP(res, sdp.Answer(k.session.Local(), sdp.Origin{ID: 1, Version: 1}, k.agreed))
}

func (k *call) response(status int, reason string) *sip.Response {
	res := sip.NewResponseFromRequest(k.req, status, reason, nil)
	if status > 100 {
		res.To().Params.Add("tag", k.tag)
		res.AppendHeader(k.carrier.endpoint.Contact(k.req.Transport()))
	}
	return res
}

func (k *call) respond(status int, reason string, headers ...sip.Header) {
	k.carrier.endpoint.Respond(k.tx, k.req, status, reason, headers...)
	k.carrier.journal.update(k.entry, func(e *Entry) { e.Status, e.EndedAt = status, time.Now() })
}

func (k *call) endEarly() {
	if k.session != nil {
		k.session.Close()
	}
	select {
	case <-k.canceled:
		k.carrier.journal.update(k.entry, func(e *Entry) {
			e.Canceled, e.Status, e.Cause, e.EndedAt = true, 487, media.Canceled, time.Now()
		})
	default:
		k.respond(http.StatusServiceUnavailable, "Closing")
	}
}

func (k *call) finish() {
	switch s := k.script.Status; s {
	case 0:
		for k.pause(time.Minute) {
			select {
			case <-k.canceling:
				k.answer()
				return
			default:
			}
		}
		k.endEarly()
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
