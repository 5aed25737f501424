package control

import (
	"context"
	"errors"

	"github.com/parley-voice/parley/media"
)

// ErrBusy is returned by a node that takes no more calls.
var ErrBusy = errors.New("the node takes no more calls")

// Room says whether the node would take a call now.
func (n *Node) Room() bool { return n.Accepting() && n.room() > 0 }

// Take runs a call that was claimed elsewhere than from the queue, beside the
// others. The end of ctx does not end it. A node that is full, or stops, returns
// ErrBusy, and the claim is to be finished by whoever made it.
func (n *Node) Take(ctx context.Context, c *Claim) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stop == nil || n.room() <= 0 {
		return ErrBusy
	}
	select {
	case <-n.stop:
		return ErrBusy
	default:
	}
	n.run(context.WithoutCancel(ctx), c) // under the lock: whoever stops the node waits for it
	return nil
}

// neverFails makes the end of a web call one, also where it never came to be.
func neverFails(f *Final) {
	if f.Status == Failed {
		f.Status = Ended
		if f.Reason == Reason(media.NoAnswer) {
			f.Reason = ReasonNeverJoined
		}
	}
}

// Talked says whether there was a conversation.
func (e Event) Talked() bool {
	if e.Status != Ended {
		return false
	}
	switch e.Reason {
	case ReasonNeverJoined, ReasonCancelled, ReasonInternalError: // of web calls, which never fail
		return false
	default:
		return true
	}
}
