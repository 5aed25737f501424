package sip

import (
	"context"
	"net/netip"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/latch"
	"github.com/parley-voice/parley/media/sdp"
	"github.com/parley-voice/parley/sip/dialog"
	"github.com/parley-voice/parley/sip/leg"
	"github.com/parley-voice/parley/sip/proxy"
)

// maxEarlyDialogs bounds the early dialogs of a call.
const maxEarlyDialogs = 16

// An earlyDialog is one ringing phone (RFC 3261 section 12.1).
type earlyDialog struct {
	dialog *dialog.Dialog
	agreed *sdp.Agreement // agreed session; nil before a session description
	rseq   uint32         // RSeq of the last reliable response; 0 for none
	remove func()
}

// acceptProvisional handles a provisional response above 100. It returns false for a repeated
// response or one out of order.
func (a *attempt) acceptProvisional(res *sip.Response) bool {
	e := a.earlyDialog(res)
	if e == nil {
		return true // without a tag there is no dialog, but the phone rings
	}
	if leg.HasToken(res, "Require", "", "100rel") {
		rseq, ok := proxy.ParseNumber(res.GetHeader("RSeq"))
		if !ok || e.rseq != 0 && rseq != e.rseq+1 { // RFC 3262 section 4
			return false
		}
		e.rseq = rseq
		a.sendPRACK(e)
	}
	remote, found, err := leg.ReadSDP(res)
	if err != nil || !found {
		return true
	}
	if agreed, err := leg.Agree(a.session, remote, a.wish, a.dest.Hop.Addr.Addr()); err == nil {
		a.mu.Lock()
		e.agreed = &agreed
		a.mu.Unlock()
		a.session.Start(leg.EarlyParams(agreed, a.expectedSources(res.Source())))
	}
	return true
}

// expectedSources returns the expected media and signaling addresses of a peer
// whose message came from source.
func (a *attempt) expectedSources(source string) latch.ExpectedSources {
	return leg.AddSource(latch.ExpectedSources{
		Signaling: []netip.Addr{a.dest.Hop.Addr.Addr().Unmap()}, Media: a.target.Trunk.MediaSources,
	}, source)
}

// earlyDialog returns the early dialog of a response, creating it if needed. It
// returns nil for a response without a tag.
func (a *attempt) earlyDialog(res *sip.Response) *earlyDialog {
	d, err := dialog.FromResponse(a.invite, res)
	if err != nil || d.Key().Remote == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.earlyDialogs[d.Key().Remote]
	if e != nil || len(a.earlyDialogs) == maxEarlyDialogs {
		return e
	}
	e = &earlyDialog{dialog: d, remove: func() {}}
	handler := earlyHandler{a, e}
	if a.ua.endpoint.AddDialog(d.Key(), handler) {
		e.remove = func() { a.ua.endpoint.RemoveDialog(d.Key(), handler) }
	}
	if a.earlyDialogs == nil {
		a.earlyDialogs = map[string]*earlyDialog{}
	}
	a.earlyDialogs[d.Key().Remote] = e
	return e
}

// An earlyHandler answers the requests of an early dialog.
type earlyHandler struct {
	attempt *attempt
	dialog  *earlyDialog
}

func (r earlyHandler) Serve(req *sip.Request, tx sip.ServerTransaction) {
	if req.Method == sip.UPDATE {
		r.attempt.onUpdate(r.dialog, req, tx)
	} else if !req.IsAck() {
		r.attempt.ua.endpoint.Respond(tx, req, 481, "Call/Transaction Does Not Exist")
	}
}

func (r earlyHandler) CheckCSeq(cseq uint32) bool { return r.dialog.dialog.CheckCSeq(cseq) }

// Hangup implements endpoint.DialogHandler. Dial cancels the call instead.
func (earlyHandler) Hangup(media.Cause) error { return nil }

func (a *attempt) removeEarlyDialogs() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.earlyDialogs {
		e.remove()
	}
}

// sendPRACK acknowledges a reliable response. The response to the PRACK has no effect.
func (a *attempt) sendPRACK(e *earlyDialog) {
	req := e.dialog.Prack(e.rseq, a.invite.CSeq().SeqNo)
	if a.addCredentials(req) != nil {
		return
	}
	a.ua.endpoint.Go(func() { _, _ = leg.Do(context.Background(), a.ua.endpoint, e.dialog, req) })
}

// onUpdate answers an UPDATE in an early dialog (RFC 3311 section 5.2).
func (a *attempt) onUpdate(e *earlyDialog, req *sip.Request, tx sip.ServerTransaction) {
	res := sip.NewResponseFromRequest(req, 200, "OK", nil)
	res.AppendHeader(a.ua.endpoint.Contact(e.dialog.Transport()))
	remote, found, err := leg.ReadSDP(req)
	if err == nil && found {
		a.mu.Lock()
		first := e.agreed == nil
		a.mu.Unlock()
		if first { // our own offer is not answered yet
			a.ua.endpoint.Respond(tx, req, 491, "Request Pending")
			return
		}
		var agreed sdp.Agreement
		if agreed, err = leg.Agree(a.session, remote, a.wish, a.dest.Hop.Addr.Addr()); err == nil {
			a.mu.Lock()
			e.agreed = &agreed
			a.mu.Unlock()
			a.session.Start(leg.EarlyParams(agreed, a.expectedSources(req.Source())))
			leg.SetSDP(res, a.answerOffer(agreed))
		}
	}
	if err != nil {
		a.ua.endpoint.Respond(tx, req, 488, "Not Acceptable Here")
		return
	}
	e.dialog.Retarget(req.Contact())
	a.ua.endpoint.TraceSent(res, req.Source())
	_ = tx.Respond(res) // if the response is lost, the request is retransmitted
}

// answerOffer answers an offer in an early dialog and returns our new
// description.
func (a *attempt) answerOffer(agreed sdp.Agreement) *sdp.Description {
	a.mu.Lock()
	defer a.mu.Unlock()
	origin := a.localSDP.Origin
	origin.Version++
	a.localSDP = sdp.Answer(a.session.Local(), origin, agreed)
	return a.localSDP
}
