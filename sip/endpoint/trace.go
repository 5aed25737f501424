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

// heard sees every message as it was read, in its order: the library hands each
// to a goroutine of its own, where a final response may overtake the ringing
// that came before it.
func (e *Endpoint) heard(msg sip.Message) {
	id := msg.CallID()
	if id == nil {
		return
	}
	l := e.Ladder(string(*id))
	if l == nil {
		return
	}
	if res, ok := msg.(*sip.Response); ok && (res.StatusCode == 180 || res.StatusCode == 183) {
		l.Ring()
	}
	l.Add(ladder.Rung(msg, false, source(msg), time.Now()))
}

func source(msg sip.Message) string {
	switch msg := msg.(type) {
	case *sip.Request:
		return msg.Source()
	case *sip.Response:
		return msg.Source()
	default:
		return ""
	}
}

// Note puts a message of ours on the ladder of its call. Requests, and answers
// by Respond, are put there by themselves, as is what comes in.
func (e *Endpoint) Note(msg sip.Message, peer string) {
	id := msg.CallID()
	if id == nil {
		return
	}
	if l := e.Ladder(string(*id)); l != nil {
		l.Add(ladder.Rung(msg, true, peer, time.Now()))
	}
}
