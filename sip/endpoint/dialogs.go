package endpoint

import (
	"maps"
	"slices"
	"sync"

	"github.com/emiago/sipgo/sip"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/dialog"
)

// A DialogHandler answers the requests of a dialog. Its type must be comparable.
type DialogHandler interface {
	// Serve answers one request of the dialog, or takes its ACK. It runs on a
	// goroutine of its own.
	Serve(req *sip.Request, tx sip.ServerTransaction)
	// CheckCSeq records the CSeq of a request. It returns false if the request
	// is older than an earlier one. It is not called for ACK and BYE.
	CheckCSeq(cseq uint32) bool
	// Hangup ends the dialog. It does not block.
	Hangup(cause media.Cause) error
}

// A dialogTable holds the handlers of dialogs. The zero value is ready.
type dialogTable struct {
	mu       sync.Mutex
	handlers map[dialog.Key]DialogHandler
	closed   bool
}

// AddDialog makes h the handler of a dialog, instead of any earlier one, until
// RemoveDialog. It returns false once the endpoint is closing.
func (e *Endpoint) AddDialog(key dialog.Key, h DialogHandler) bool { return e.dialogs.add(key, h) }

// RemoveDialog removes h, unless the dialog has got another handler.
func (e *Endpoint) RemoveDialog(key dialog.Key, h DialogHandler) { e.dialogs.remove(key, h) }

func (t *dialogTable) add(key dialog.Key, h DialogHandler) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if t.handlers == nil {
		t.handlers = map[dialog.Key]DialogHandler{}
	}
	t.handlers[key] = h
	return true
}

func (t *dialogTable) remove(key dialog.Key, h DialogHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handlers[key] == h {
		delete(t.handlers, key)
	}
}

// find returns the handler for the dialog of a request, or nil.
func (t *dialogTable) find(req *sip.Request) DialogHandler {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handlers[dialog.RequestKey(req)]
}

// close makes add fail, and returns all handlers.
func (t *dialogTable) close() []DialogHandler {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return slices.Collect(maps.Values(t.handlers))
}

// isInOrder reports whether a request is not older than earlier ones of its dialog
// (RFC 3261 section 12.2.2). A BYE always counts: the peer has ended the call.
func (t *dialogTable) isInOrder(req *sip.Request) bool {
	if req.IsAck() || req.IsCancel() || req.Method == sip.BYE || !isInDialog(req) {
		return true
	}
	h := t.find(req)
	return h == nil || h.CheckCSeq(req.CSeq().SeqNo)
}

// isInDialog reports whether a request has a To tag.
func isInDialog(req *sip.Request) bool {
	_, tagged := req.To().Params.Get("tag")
	return tagged
}
