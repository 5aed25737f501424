package endpoint

import (
	"errors"
	"sync"
	"time"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/sip/siptrace"
)

// A callTable holds the traced calls by Call-ID. The zero value is ready.
type callTable struct {
	mu    sync.Mutex
	calls map[string]call
}

// A call is the trace of a call and the addresses that its messages may use.
type call struct {
	ladder  *siptrace.Ladder
	sources *Sources // accepted addresses; nil accepts all
}

// StartTrace records the messages of a call until EndTrace. Until then the
// endpoint accepts messages of the call only from addresses in sources, and
// sends its requests only where sources allows; nil allows all.
func (e *Endpoint) StartTrace(callID string, sources *Sources) *siptrace.Ladder {
	return e.calls.start(callID, sources)
}

// EndTrace ends the trace of a call.
func (e *Endpoint) EndTrace(callID string) { e.calls.end(callID) }

// Ladder returns the trace of a call, or nil.
func (e *Endpoint) Ladder(callID string) *siptrace.Ladder { return e.calls.get(callID).ladder }

// TraceReceived adds a response to the trace of its call, once. Callers that
// take a response from a transaction call it before they act on the response:
// the library's hook may not have run yet. Do calls it.
func (e *Endpoint) TraceReceived(res *sip.Response) {
	if res.CallID() == nil {
		return
	}
	c := e.calls.get(string(*res.CallID()))
	l := c.ladder
	if l == nil {
		return
	}
	if cseq := res.CSeq(); cseq != nil && res.StatusCode > 100 && res.StatusCode < 300 && isTargetRefresh(cseq.MethodName) {
		e.guard.learn(c.sources, res)
	}
	if res.IsProvisional() {
		l.SetProgress(res.StatusCode)
	}
	l.AddReceived(res, res.Source(), time.Now())
}

// TraceSent adds a sent message to the trace of its call. Send, SendACK and
// Respond call it. The library's ACK of a refusal is not in the trace.
func (e *Endpoint) TraceSent(msg sip.Message, peer string) {
	if id := msg.CallID(); id != nil {
		if l := e.Ladder(string(*id)); l != nil {
			l.Add(siptrace.Describe(msg, true, peer, time.Now()))
		}
	}
}

// Debug logs an error at debug level, unless it is ErrClosed.
func (e *Endpoint) Debug(what string, err error) {
	if e.Log != nil && !errors.Is(err, ErrClosed) {
		e.Log.Debug(what, "err", err)
	}
}

func (t *callTable) start(callID string, sources *Sources) *siptrace.Ladder {
	l := siptrace.New()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string]call{}
	}
	t.calls[callID] = call{l, sources}
	return l
}

func (t *callTable) end(callID string) {
	t.mu.Lock()
	l := t.calls[callID].ladder
	delete(t.calls, callID)
	t.mu.Unlock()
	if l != nil {
		l.End()
	}
}

func (t *callTable) get(callID string) call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[callID]
}

// addRequest adds a peer's request to the trace of its call. It must run before
// the request is handled: a BYE ends the trace. Retransmissions that the library
// absorbs are not in the trace.
func (t *callTable) addRequest(req *sip.Request) {
	if id := req.CallID(); id != nil {
		if l := t.get(string(*id)).ladder; l != nil {
			l.Add(siptrace.Describe(req, false, req.Source(), time.Now()))
		}
	}
}
