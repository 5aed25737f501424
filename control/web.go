package control

import (
	"context"
	"errors"

	"github.com/parley-voice/parley/media"
)

// ErrBusy is returned by a node that takes no more calls.
var ErrBusy = errors.New("node takes no more calls")

// HasCapacity reports whether the node would take a call now.
func (n *Node) HasCapacity() bool { return n.Accepting() && n.capacity() > 0 }

// Take runs a call that was not claimed from the queue. Canceling ctx does not end it. A
// full or stopping node returns ErrBusy; the caller then has to finish the claim.
func (n *Node) Take(ctx context.Context, c *Claim) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop == nil || n.capacity() <= 0 {
		return ErrBusy
	}
	select {
	case <-n.stop:
		return ErrBusy
	default:
	}
	n.run(context.WithoutCancel(ctx), c) // under the lock, so that Stop waits for it
	return nil
}

// convertToWebResult turns a failure into an end: web calls never fail.
func convertToWebResult(f *CallResult) {
	if f.Status == Failed {
		f.Status = Ended
		if f.Reason == Reason(media.NoAnswer) {
			f.Reason = ReasonNeverJoined
		}
	}
}

// HadConversation reports whether the call had a conversation.
func (e Event) HadConversation() bool {
	if e.Status != Ended {
		return false
	}
	switch e.Reason {
	case ReasonNeverJoined, ReasonCanceled, ReasonInternalError: // web calls, which never fail
		return false
	default:
		return true
	}
}
