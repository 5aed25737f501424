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

// heard sees every response as it was read, in its order: the library hands
// each to a goroutine of its own, where a final one may overtake the ringing
// that came before it.
func (e *Endpoint) heard(msg sip.Message) {
	res, ok := msg.(*sip.Response)
	if !ok || res.CallID() == nil {
		return // a request: see asked
	}
	l := e.Ladder(string(*res.CallID()))
	if l == nil {
		return
	}
	if res.IsProvisional() {
		l.Progress(res.StatusCode)
	}
	l.Hear(res, res.Source(), time.Now())
}

// Received is told of a response by whoever waited for it, before anything is
// done about it: heard may not have come to it yet. Ask tells it.
func (e *Endpoint) Received(res *sip.Response) { e.heard(res) }

// asked puts a peer's request on the ladder of its call before anything is done
// about it: a BYE ends the ladder. What the library takes for a repetition does
// not come here.
func (e *Endpoint) asked(req *sip.Request) {
	if id := req.CallID(); id != nil {
		if l := e.Ladder(string(*id)); l != nil {
			l.Add(ladder.Rung(req, false, req.Source(), time.Now()))
		}
	}
}

// Note puts a message of ours on the ladder of its call. Requests, and answers
// by Respond, are put there by themselves, as is what comes in. The ACK of a
// refusal is the library's, and is not there.
func (e *Endpoint) Note(msg sip.Message, peer string) {
	id := msg.CallID()
	if id == nil {
		return
	}
	if l := e.Ladder(string(*id)); l != nil {
		l.Add(ladder.Rung(msg, true, peer, time.Now()))
	}
}
