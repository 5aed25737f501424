package endpoint

import (
	"strings"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/dialog"
)

// routes says who answers which request.
func (e *Endpoint) routes(s *sipgo.Server) {
	s.OnInvite(e.checked(e.invite))
	s.OnAck(e.checked(e.ack))
	s.OnBye(e.checked(e.bye))
	s.OnOptions(e.checked(e.options))
	s.OnUpdate(e.checked(e.update))
	s.OnInfo(e.checked(e.info))
	s.OnNotify(e.checked(e.notify))
	// A CANCEL that belongs to an INVITE never comes here (RFC 3261 section 9.2).
	s.OnCancel(e.checked(func(req *sip.Request, tx sip.ServerTransaction) {
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	}))
	s.OnNoRoute(e.checked(func(req *sip.Request, tx sip.ServerTransaction) { e.Respond(tx, req, 405, "Method Not Allowed") }))
}

type answerer = func(req *sip.Request, tx sip.ServerTransaction)

// checked answers only requests that have what every request must have (RFC
// 3261 section 8.1.1), and counts as work while it does.
func (e *Endpoint) checked(next answerer) sipgo.RequestHandler {
	return func(req *sip.Request, tx sip.ServerTransaction) {
		done := make(chan struct{})
		ran := e.Go(func() {
			defer close(done)
			e.note(req, false, req.Source())
			if complete(req) {
				next(req, tx)
			} else if !req.IsAck() {
				e.Respond(tx, req, 400, "Bad Request")
			}
		})
		if ran {
			<-done
		}
	}
}

func complete(req *sip.Request) bool {
	from, to, cseq := req.From(), req.To(), req.CSeq()
	if from == nil || to == nil || cseq == nil || req.CallID() == nil || req.Via() == nil {
		return false
	}
	_, tagged := from.Params.Get("tag")
	return tagged && cseq.MethodName == req.Method && len(*req.CallID()) <= 512
}

// Respond answers a request without a body.
func (e *Endpoint) Respond(tx sip.ServerTransaction, req *sip.Request, status int, reason string, headers ...sip.Header) {
	res := sip.NewResponseFromRequest(req, status, reason, nil)
	if status == 405 || status == 200 && req.Method == sip.OPTIONS {
		res.AppendHeader(sip.NewHeader("Allow", Allow))
	}
	for _, h := range headers {
		res.AppendHeader(h)
	}
	e.note(res, true, req.Source())
	if err := tx.Respond(res); err != nil && e.Log != nil {
		e.Log.Debug("sip response not sent", "method", string(req.Method), "status", status)
	}
}

// leg is the leg that an in-dialog request belongs to.
func (e *Endpoint) leg(req *sip.Request) *Leg {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.legs[dialog.RequestKey(req)]
}

func inDialog(req *sip.Request) bool {
	_, tagged := req.To().Params.Get("tag")
	return tagged
}

func (e *Endpoint) bye(req *sip.Request, tx sip.ServerTransaction) {
	l := e.leg(req)
	switch {
	case l == nil:
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	case !l.dialog.Receive(req.CSeq().SeqNo):
		e.Respond(tx, req, 500, "Out Of Order")
	default:
		// Ended before it is answered, so that no BYE of ours crosses this one.
		l.end(media.RemoteHangup, false)
		if !l.silent {
			e.Respond(tx, req, 200, "OK")
		}
	}
}

func (e *Endpoint) options(req *sip.Request, tx sip.ServerTransaction) {
	e.mu.Lock()
	busy := e.draining || e.closing
	e.mu.Unlock()
	switch {
	case inDialog(req) && e.leg(req) == nil:
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	case busy:
		e.Respond(tx, req, 503, "Service Unavailable", sip.NewHeader("Retry-After", "30"))
	default:
		e.Respond(tx, req, 200, "OK", sip.NewHeader("Accept", "application/sdp"))
	}
}

func (e *Endpoint) ack(req *sip.Request, _ sip.ServerTransaction) {
	l := e.leg(req)
	if l == nil {
		return
	}
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

func (e *Endpoint) invite(req *sip.Request, tx sip.ServerTransaction) {
	switch {
	case inDialog(req):
		if l := e.leg(req); l != nil {
			l.reinvite(req, tx)
			return
		}
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	case e.Invite != nil:
		e.Invite(req, tx)
	default:
		// The same answer for every number, so that none can be found out.
		e.Respond(tx, req, 403, "Forbidden")
	}
}

// An Updated early dialog answers an UPDATE.
type Updated func(req *sip.Request, tx sip.ServerTransaction)

// Early has an early dialog answered for, until forget.
func (e *Endpoint) Early(key dialog.Key, updated Updated) (forget func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.early[key] = updated
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.early, key)
	}
}

// update takes an UPDATE (RFC 3311).
func (e *Endpoint) update(req *sip.Request, tx sip.ServerTransaction) {
	if l := e.leg(req); l != nil {
		l.answerUpdate(req, tx)
		return
	}
	e.mu.Lock()
	updated := e.early[dialog.RequestKey(req)]
	e.mu.Unlock()
	if updated == nil {
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
		return
	}
	updated(req, tx)
}

// isSDP says whether a message carries a session description.
func isSDP(msg interface {
	ContentType() *sip.ContentTypeHeader
	Body() []byte
},
) bool {
	if len(msg.Body()) == 0 {
		return false
	}
	c := msg.ContentType()
	if c == nil {
		return false
	}
	kind, _, _ := strings.Cut(string(*c), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/sdp")
}
