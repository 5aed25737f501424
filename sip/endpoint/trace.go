package endpoint

import (
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/ladder"
)

// Follow keeps a ladder of the messages of a call, until Forget.
func (e *Endpoint) Follow(callID string) *ladder.Ladder {
	l := ladder.New()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ladders[callID] = l
	return l
}

// Forget ends the ladder of a call.
func (e *Endpoint) Forget(callID string) {
	e.mu.Lock()
	l := e.ladders[callID]
	delete(e.ladders, callID)
	e.mu.Unlock()
	if l != nil {
		l.End()
	}
}

// Received puts a response on the ladder of its call. Whoever waits for the
// responses of a transaction calls it; Ask does.
func (e *Endpoint) Received(res *sip.Response) { e.note(res, false, res.Source()) }

func (e *Endpoint) note(msg sip.Message, out bool, peer string) {
	id := msg.CallID()
	if id == nil {
		return
	}
	e.mu.Lock()
	l := e.ladders[string(*id)]
	e.mu.Unlock()
	if l != nil {
		l.Add(ladder.Rung(msg, out, peer, time.Now()))
	}
}
