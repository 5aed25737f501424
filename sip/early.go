package sip

import (
	"context"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
)

// mostEarly bounds the phones of one call that may ring at once.
const mostEarly = 16

// An early dialog is one phone that rings (RFC 3261 section 12.1).
type early struct {
	dialog *dialog.Dialog
	agreed *sdp.Agreement // nil before its description came
	rseq   uint32         // of its last reliable response; 0 before one
	forget func()
}

// hear takes a provisional response above 100. It is false for one that was
// heard before, or comes out of turn.
func (a *attempt) hear(res *sip.Response) bool {
	e := a.phone(res)
	if e == nil {
		return true // without a tag it is of no dialog, but a ring is a ring
	}
	if leg.Lists(res, "Require", "", "100rel") {
		rseq, ok := proxy.Number(res.GetHeader("RSeq"))
		if !ok || e.rseq != 0 && rseq != e.rseq+1 { // RFC 3262 section 4
			return false
		}
		e.rseq = rseq
		a.prack(e)
	}
	theirs, there, err := leg.Description(res)
	if err != nil || !there {
		return true
	}
	if agreed, err := leg.Agree(a.session, theirs, a.wish); err == nil {
		a.mu.Lock()
		e.agreed = &agreed
		a.mu.Unlock()
		a.session.Start(leg.Early(agreed))
	}
	return true
}

// phone is the early dialog of a response, which may be its first.
func (a *attempt) phone(res *sip.Response) *early {
	d, err := dialog.FromResponse(a.invite, res)
	if err != nil || d.Key().Remote == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.early[d.Key().Remote]
	if e != nil || len(a.early) == mostEarly {
		return e
	}
	e = &early{dialog: d, forget: func() {}}
	party := ringing{a, e}
	if a.ua.endpoint.Enter(d.Key(), party) {
		e.forget = func() { a.ua.endpoint.Leave(d.Key(), party) }
	}
	if a.early == nil {
		a.early = map[string]*early{}
	}
	a.early[d.Key().Remote] = e
	return e
}

// ringing answers for an early dialog.
type ringing struct {
	attempt *attempt
	early   *early
}

// Serve implements endpoint.Party.
func (r ringing) Serve(req *sip.Request, tx sip.ServerTransaction) {
	if req.Method == sip.UPDATE {
		r.attempt.updated(r.early, req, tx)
	} else if !req.IsAck() {
		r.attempt.ua.endpoint.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	}
}

// Hangup implements endpoint.Party. Whoever dials sees to it.
func (ringing) Hangup(media.Cause) error { return nil }

// forget lets go of the phones that rang.
func (a *attempt) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.early {
		e.forget()
	}
}

// prack acknowledges a reliable response. Its answer decides nothing.
func (a *attempt) prack(e *early) {
	req := e.dialog.Prack(e.rseq, a.invite.CSeq().SeqNo)
	if a.authenticate(req) != nil {
		return
	}
	a.ua.endpoint.Sign(req)
	a.ua.endpoint.Go(func() { _, _ = a.ua.endpoint.Ask(context.Background(), req) })
}

// updated answers an UPDATE of a phone that rings (RFC 3311 section 5.2).
func (a *attempt) updated(e *early, req *sip.Request, tx sip.ServerTransaction) {
	if !e.dialog.Receive(req.CSeq().SeqNo) {
		a.ua.endpoint.Respond(tx, req, 500, "Out Of Order")
		return
	}
	res := sip.NewResponseFromRequest(req, 200, "OK", nil)
	res.AppendHeader(a.ua.endpoint.Contact(e.dialog.Transport()))
	theirs, there, err := leg.Description(req)
	if err == nil && there {
		a.mu.Lock()
		first := e.agreed == nil
		a.mu.Unlock()
		if first { // our own offer is not answered yet
			a.ua.endpoint.Respond(tx, req, 491, "Request Pending")
			return
		}
		var agreed sdp.Agreement
		if agreed, err = leg.Agree(a.session, theirs, a.wish); err == nil {
			a.mu.Lock()
			e.agreed = &agreed
			a.mu.Unlock()
			a.session.Start(leg.Early(agreed))
			leg.WithSDP(res, a.tell(agreed))
		}
	}
	if err != nil {
		a.ua.endpoint.Respond(tx, req, 488, "Not Acceptable Here")
		return
	}
	e.dialog.Retarget(req.Contact())
	a.ua.endpoint.Note(res, req.Source())
	_ = tx.Respond(res) // where it is lost, the request comes once more
}

// tell answers an offer of a phone that rings, and is what was told last.
func (a *attempt) tell(agreed sdp.Agreement) *sdp.Description {
	a.mu.Lock()
	defer a.mu.Unlock()
	origin := a.told.Origin
	origin.Version++
	a.told = sdp.Answer(a.session.Local(), origin, agreed)
	return a.told
}
