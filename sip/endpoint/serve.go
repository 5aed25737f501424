package endpoint

import (
	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/dialog"
)

// routes says who answers which request.
func (e *Endpoint) routes(s *sipgo.Server) {
	s.OnInvite(e.checked(e.invite))
	s.OnAck(e.checked(e.within))
	s.OnBye(e.checked(e.within))
	s.OnUpdate(e.checked(e.within))
	s.OnInfo(e.checked(e.within))
	s.OnNotify(e.checked(e.within))
	s.OnOptions(e.checked(e.options))
	// A CANCEL that belongs to an INVITE never comes here (RFC 3261 section 9.2).
	s.OnCancel(e.checked(func(req *sip.Request, tx sip.ServerTransaction) {
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	}))
	s.OnNoRoute(e.checked(e.other))
}

type answerer = func(req *sip.Request, tx sip.ServerTransaction)

// Respond answers a request without a body.
func (e *Endpoint) Respond(tx sip.ServerTransaction, req *sip.Request, status int, reason string, headers ...sip.Header) {
	res := sip.NewResponseFromRequest(req, status, reason, nil)
	res.SipVersion = "SIP/2.0" // whatever the request says
	if to := res.To(); to != nil && req.To() != nil && status > 100 && !inDialog(req) {
		to.Params.Remove("tag") // made up anew for each answer
		to.Params.Add("tag", e.tag(req))
	}
	if status == 405 || status == 200 && req.Method == sip.OPTIONS {
		res.AppendHeader(sip.NewHeader("Allow", Allow))
	}
	for _, h := range headers {
		res.AppendHeader(h)
	}
	e.Note(res, req.Source())
	if err := tx.Respond(res); err != nil && e.Log != nil {
		e.Log.Debug("sip response not sent", "method", string(req.Method), "status", status)
	}
}

func (e *Endpoint) other(req *sip.Request, tx sip.ServerTransaction) {
	if e.Other != nil {
		e.Other(req, tx)
		return
	}
	e.Respond(tx, req, 405, "Method Not Allowed")
}

// A Party answers the requests of a dialog.
type Party interface {
	// Serve answers one request of the dialog, or takes its ACK. It has a
	// goroutine of its own.
	Serve(req *sip.Request, tx sip.ServerTransaction)
	// Hangup ends the dialog. It returns at once.
	Hangup(cause media.Cause) error
}

// Enter has a party answer for a dialog, in place of the one before, until
// Leave. It is false once the endpoint is closing. A party is comparable.
func (e *Endpoint) Enter(key dialog.Key, p Party) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return false
	}
	e.parties[key] = p
	return true
}

// Leave ends what Enter began, unless another party has taken the dialog over.
func (e *Endpoint) Leave(key dialog.Key, p Party) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.parties[key] == p {
		delete(e.parties, key)
	}
}

// party is who answers for the dialog of a request; nil where nobody does.
func (e *Endpoint) party(req *sip.Request) Party {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.parties[dialog.RequestKey(req)]
}

// within has the party of a dialog answer.
func (e *Endpoint) within(req *sip.Request, tx sip.ServerTransaction) {
	if p := e.party(req); p != nil {
		p.Serve(req, tx)
	} else if !req.IsAck() {
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	}
}

func inDialog(req *sip.Request) bool {
	_, tagged := req.To().Params.Get("tag")
	return tagged
}

func (e *Endpoint) options(req *sip.Request, tx sip.ServerTransaction) {
	e.mu.Lock()
	busy := e.draining || e.closing
	e.mu.Unlock()
	switch {
	case inDialog(req) && e.party(req) == nil:
		e.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	case e.Options != nil && !inDialog(req):
		e.Respond(tx, req, e.Options(), "As Told")
	case busy:
		e.Respond(tx, req, 503, "Service Unavailable", sip.NewHeader("Retry-After", retryAfter))
	default:
		e.Respond(tx, req, 200, "OK", sip.NewHeader("Accept", "application/sdp"))
	}
}

func (e *Endpoint) invite(req *sip.Request, tx sip.ServerTransaction) {
	switch {
	case inDialog(req):
		e.within(req, tx)
	case e.Invite != nil:
		e.Invite(req, tx)
	default:
		// The same answer for every number, so that none can be found out.
		e.Respond(tx, req, 403, "Forbidden")
	}
}
