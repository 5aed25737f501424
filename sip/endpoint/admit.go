package endpoint

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/sanitize"
)

const (
	defaultMaxInbound = 1000
	// retryAfter is the Retry-After of a 503, in seconds.
	retryAfter = "30"
)

// admission bounds the requests outside dialogs. Call init before use.
type admission struct {
	merges  sanitize.MergeDetector
	active  atomic.Int64
	maximum int64
	secret  [32]byte // key from which tags are derived
}

func (a *admission) init(maximum int) {
	a.maximum = int64(cmp.Or(maximum, defaultMaxInbound))
	_, _ = rand.Read(a.secret[:]) // reading random bytes never fails
}

// acquire counts a request outside dialogs until release. ok is false if there are
// too many, or if the same request has arrived by another path.
func (a *admission) acquire(req *sip.Request) (r sanitize.Refusal, release func(), ok bool) {
	if a.merges.IsMerged(req, time.Now()) {
		return sanitize.Refusal{Status: 482, Reason: "Loop Detected"}, func() {}, false
	}
	release = func() { a.active.Add(-1) }
	if a.active.Add(1) > a.maximum {
		later := []sip.Header{sip.NewHeader("Retry-After", retryAfter)}
		return sanitize.Refusal{Status: 503, Reason: "Service Unavailable", Headers: later}, release, false
	}
	return sanitize.Refusal{}, release, true
}

// tag returns the To tag for the response to a request. A retransmitted request
// gets the same tag, without any state.
func (a *admission) tag(req *sip.Request) string {
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
	mac := hmac.New(sha256.New, a.secret[:])
	_, _ = mac.Write([]byte(text.String())) // writing to a hash never fails
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

// withAdmission wraps a handler: it runs only for admitted requests, and Close waits
// for it.
func (e *Endpoint) withAdmission(next requestHandler) sipgo.RequestHandler {
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

func (e *Endpoint) admit(next requestHandler, req *sip.Request, tx sip.ServerTransaction) {
	req = sanitize.TrimParams(req)
	if e.guard.isForeignRequest(req) {
		tx.Terminate()
		return
	}
	e.calls.addRequest(req)
	refusal, ok := sanitize.Rules{Methods: Allow, Extensions: Supported}.Check(req)
	if ok && !isInDialog(req) && !req.IsAck() && !req.IsCancel() {
		var release func()
		refusal, release, ok = e.admission.acquire(req)
		defer release()
	}
	if ok && !e.dialogs.isInOrder(req) {
		refusal, ok = sanitize.Refusal{Status: 500, Reason: "Out Of Order"}, false
	}
	if ok {
		if req.IsInvite() && e.dialogs.find(req) != nil {
			e.Go(func() { e.forwardACKs(tx) })
		}
		if isTargetRefresh(req.Method) && isInDialog(req) {
			e.guard.learn(e.calls.get(string(*req.CallID())).sources, req)
		}
		next(req, tx)
	} else {
		e.filter.CountRefused(refusal.Status)
		if !req.IsAck() { // an ACK gets no response
			e.Respond(tx, req, refusal.Status, refusal.Reason, refusal.Headers...)
		}
	}
	if !e.keepsTransaction(req, ok) {
		tx.Terminate()
	}
}

// forwardACKs handles each ACK that the library assigns to the transaction of a
// re-INVITE: the ACK of a refusal, and an ACK of a 2xx with the branch of the
// INVITE, which some peers send (RFC 6026 section 7.1).
func (e *Endpoint) forwardACKs(tx sip.ServerTransaction) {
	for {
		select {
		case ack := <-tx.Acks():
			if ack = sanitize.TrimParams(ack); !e.guard.isForeignRequest(ack) {
				e.calls.addRequest(ack)
				e.onInDialog(ack, tx)
			}
		case <-tx.Done():
			return
		case <-e.closed:
			return
		}
	}
}

// keepsTransaction reports whether the transaction stays, to retransmit its response. Requests
// of unknown senders are answered without state, so that they use no memory (RFC 3261 section
// 8.2.7). A refused INVITE keeps no transaction either, because without an ACK its refusal
// would be retransmitted for 32 s, perhaps to a forged address.
func (e *Endpoint) keepsTransaction(req *sip.Request, admitted bool) bool {
	switch {
	case req.Transport() != "UDP": // so that the response is not retransmitted
		return true
	case req.IsInvite() && e.dialogs.find(req) == nil && (e.OnInvite == nil || !admitted):
		return false
	case admitted && (e.OnInvite != nil || e.OnOther != nil || e.dialogs.find(req) != nil):
		return true
	default:
		return e.filter.Trusts(req.Source())
	}
}
