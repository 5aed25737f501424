package endpoint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/guard"
)

const (
	// maxInbound is how many requests outside dialogs are dealt with at once
	// where nobody says otherwise.
	maxInbound = 1000
	// retryAfter is when a peer may ask again, in seconds.
	retryAfter = "30"
)

// checked answers only requests that are admitted, and counts as work while it
// does.
func (e *Endpoint) checked(next answerer) sipgo.RequestHandler {
	return func(req *sip.Request, tx sip.ServerTransaction) {
		done := make(chan struct{})
		ran := e.Go(func() {
			defer close(done)
			e.admit(next, req, tx)
		})
		if ran {
			<-done
		}
	}
}

// admit has a request answered by next, or refuses it.
func (e *Endpoint) admit(next answerer, req *sip.Request, tx sip.ServerTransaction) {
	req = guard.Tidy(req)
	e.asked(req)
	v, ok := guard.Rules{Methods: Allow, Extensions: Supported}.Check(req)
	if ok && !inDialog(req) && !req.IsAck() && !req.IsCancel() {
		var leave func()
		v, leave, ok = e.enter(req)
		defer leave()
	}
	if ok {
		next(req, tx)
	} else {
		e.filter.Refuse(v.Status)
		if !req.IsAck() { // there is no answer to one
			e.Respond(tx, req, v.Status, v.Reason, v.Headers...)
		}
	}
	if !e.keeps(req, ok) {
		tx.Terminate()
	}
}

// enter counts a request outside dialogs as dealt with until leave. It is false
// where there are too many, and where the request has come by another way.
func (e *Endpoint) enter(req *sip.Request) (v guard.Verdict, leave func(), ok bool) {
	if e.merges.Again(req, time.Now()) {
		return guard.Verdict{Status: 482, Reason: "Loop Detected"}, func() {}, false
	}
	most := int64(e.MaxInbound)
	if most == 0 {
		most = maxInbound
	}
	leave = func() { e.fresh.Add(-1) }
	if e.fresh.Add(1) > most {
		later := []sip.Header{sip.NewHeader("Retry-After", retryAfter)}
		return guard.Verdict{Status: 503, Reason: "Service Unavailable", Headers: later}, leave, false
	}
	return guard.Verdict{}, leave, true
}

// keeps says whether the answer to a request is kept, to be sent again where
// the request comes again. What strangers are told is made anew instead, so that
// they take no memory (RFC 3261 section 8.2.7).
func (e *Endpoint) keeps(req *sip.Request, taken bool) bool {
	switch {
	case req.Transport() != "UDP": // nothing comes again
		return true
	case taken && (e.Invite != nil || e.Other != nil || e.party(req) != nil):
		return true
	default:
		return e.filter.Knows(req.Source())
	}
}

// tag is that of our side in the answer to a request, the same however often
// it is made.
func (e *Endpoint) tag(req *sip.Request) string {
	var text strings.Builder
	if id := req.CallID(); id != nil {
		text.WriteString(id.Value() + "\n")
	}
	if cseq := req.CSeq(); cseq != nil {
		text.WriteString(cseq.Value() + "\n")
	}
	if from := req.From(); from != nil {
		text.WriteString(from.Value())
	}
	mac := hmac.New(sha256.New, e.secret[:])
	_, _ = mac.Write([]byte(text.String())) // it never fails
	return hex.EncodeToString(mac.Sum(nil)[:12])
}
