package control

import (
	"context"
	"errors"

	"github.com/parley-voice/parley/media"
)

// ErrBusy is returned by a node that takes no more calls.
var ErrBusy = errors.New("node takes no more calls")

// HasCapacity reports whether the node can take one more call.
func (n *Node) HasCapacity() bool { return n.Room().Free > 0 }

// Take runs a call that does not come from the queue. Canceling ctx does not end the call. If the node is full or
// stopping, Take returns ErrBusy, and the caller must end the call.
func (n *Node) Take(ctx context.Context, c *Claim) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop == nil || n.room().Free == 0 {
		return ErrBusy
	}
	select {
	case <-n.stop:
		return ErrBusy
	default:
	}
	n.run(context.WithoutCancel(ctx), c) // started under the lock, so that Stop waits for the call
	return nil
}

// convertToWebResult changes the status "failed" to "ended", because web calls never fail.
func convertToWebResult(f *CallResult) {
	if f.Status == Failed {
		f.Status = Ended
		if f.Reason == Reason(media.NoAnswer) {
			f.Reason = ReasonNeverJoined
		}
	}
}

// HadConversation reports whether the call of the event had a conversation.
func (e Event) HadConversation() bool {
	if e.Status != Ended {
		return false
	}
	switch e.Reason {
	case ReasonNeverJoined, ReasonCanceled, ReasonInternalError: // web calls have the status "ended" even without a conversation
		return false
	default:
		return true
	}
}
