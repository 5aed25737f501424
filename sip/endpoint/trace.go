package endpoint

import (
	"errors"
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

// Ladder is the ladder of a call, nil where nobody follows it.
func (e *Endpoint) Ladder(callID string) *ladder.Ladder {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ladders[callID]
}

// Debug logs what is seldom worth reading.
func (e *Endpoint) Debug(what string, err error) {
	if e.Log != nil && !errors.Is(err, ErrClosed) {
		e.Log.Debug(what, "err", err)
	}
}

// Received puts a response on the ladder of its call. Whoever waits for the
// responses of a transaction calls it; Ask does.
func (e *Endpoint) Received(res *sip.Response) { e.Note(res, false, res.Source()) }

// Note puts a message on the ladder of its call. Requests of ours, and
// answers by Respond, are put there by themselves.
func (e *Endpoint) Note(msg sip.Message, out bool, peer string) {
	id := msg.CallID()
	if id == nil {
		return
	}
	if l := e.Ladder(string(*id)); l != nil {
		l.Add(ladder.Rung(msg, out, peer, time.Now()))
	}
}
