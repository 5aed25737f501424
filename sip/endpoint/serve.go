package endpoint

import (
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
)

func (e *Endpoint) route(s *sipgo.Server) {
	s.OnInvite(e.withAdmission(e.onInvite))
	s.OnAck(e.withAdmission(e.onInDialog))
	s.OnBye(e.withAdmission(e.onInDialog))
	s.OnUpdate(e.withAdmission(e.onInDialog))
	s.OnInfo(e.withAdmission(e.onInDialog))
	s.OnNotify(e.withAdmission(e.onInDialog))
	s.OnOptions(e.withAdmission(e.onOptions))
	// The library handles a CANCEL that matches an INVITE (RFC 3261 section 9.2).
	s.OnCancel(e.withAdmission(func(req *sip.Request, tx sip.ServerTransaction) {
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	}))
	s.OnNoRoute(e.withAdmission(e.onOther))
}

type requestHandler = func(req *sip.Request, tx sip.ServerTransaction)

// Respond answers a request without a body, and adds the response to the trace
// of its call.
func (e *Endpoint) Respond(tx sip.ServerTransaction, req *sip.Request, status int, reason string, headers ...sip.Header) {
	res := sip.NewResponseFromRequest(req, status, reason, nil)
	res.SipVersion = "SIP/2.0" // the library copies the version of the request
	if to := res.To(); to != nil && req.To() != nil && status > 100 && !isInDialog(req) {
		to.Params.Remove("tag") // the library's tag differs for each response
		to.Params.Add("tag", e.admission.tag(req))
	}
	if status == 405 || status == 200 && req.Method == sip.OPTIONS {
		res.AppendHeader(sip.NewHeader("Allow", Allow))
	}
	for _, h := range headers {
		res.AppendHeader(h)
	}
	e.TraceSent(res, req.Source())
	if err := tx.Respond(res); err != nil && e.Log != nil {
		e.Log.Debug("failed to send sip response", "method", string(req.Method), "status", status)
	}
}

func (e *Endpoint) onOther(req *sip.Request, tx sip.ServerTransaction) {
	if e.OnOther != nil {
		e.OnOther(req, tx)
		return
	}
	e.Respond(tx, req, 405, "Method Not Allowed")
	if l := e.Ladder(req.CallID().Value()); l != nil && req.Method == sip.REFER {
		l.Explain("transfers by the carrier are not supported", time.Now())
	}
}

// onInDialog passes a request to the handler of its dialog.
func (e *Endpoint) onInDialog(req *sip.Request, tx sip.ServerTransaction) {
	if h := e.dialogs.find(req); h != nil {
		h.Serve(req, tx)
	} else if !req.IsAck() {
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	}
}

func (e *Endpoint) onOptions(req *sip.Request, tx sip.ServerTransaction) {
	switch {
	case isInDialog(req) && e.dialogs.find(req) == nil:
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	case e.OptionsStatus != nil && !isInDialog(req):
		e.Respond(tx, req, e.OptionsStatus(), "Scripted")
	case e.draining.Load():
		e.Respond(tx, req, 503, "Service Unavailable", sip.NewHeader("Retry-After", retryAfter))
	default:
		e.Respond(tx, req, 200, "OK", sip.NewHeader("Accept", "application/sdp"))
	}
}

func (e *Endpoint) onInvite(req *sip.Request, tx sip.ServerTransaction) {
	switch {
	case isInDialog(req):
		e.onInDialog(req, tx)
	case e.OnInvite != nil:
		e.OnInvite(req, tx)
	default:
		// Every number gets the same answer, so that callers cannot probe numbers.
		e.Respond(tx, req, 403, "Forbidden")
	}
}
