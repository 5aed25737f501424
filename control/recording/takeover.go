package recording

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/parley-voice/parley/control"
)

// Takeover is an event handler for the events of lost nodes. It joins the recording of the call from segments in the
// bucket. It returns control.ErrNeedsNode if there are none, because the node may come back with the file.
type Takeover struct{ Spool *Spool }

// HandleEvent implements control.EventHandler.
func (t Takeover) HandleEvent(ctx context.Context, e control.Event) error {
	if e.Kind != control.CallEnded || e.Status == control.Failed {
		return nil
	}
	c, err := t.Spool.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.RecordingStatus != control.RecordingFinalizing {
		return err
	}
	if err = t.Spool.join(ctx, c); errors.Is(err, fs.ErrNotExist) {
		return control.ErrNeedsNode
	}
	return err
}

// Settled is an event handler that waits until the recording of a call is stored or lost. So call_analyzed never
// reports as missing a recording that is stored later.
type Settled struct{ Spool *Spool }

// errNotStored means that the recording is on the disk of its node.
var errNotStored = errors.New("the recording is not stored yet")

// HandleEvent implements control.EventHandler.
func (s Settled) HandleEvent(ctx context.Context, e control.Event) error {
	sp := s.Spool
	c, err := sp.Calls.Call(ctx, "", e.CallID)
	if err != nil || c.RecordingStatus != control.RecordingFinalizing {
		return err
	}
	home, away, err := sp.Calls.CallNode(ctx, c.ID)
	if err != nil {
		return err
	}
	mine := home == "" || home == sp.Home
	switch {
	case mine:
		err = sp.upload(ctx, c)
	case away < cmp.Or(sp.Takeover, control.HomeTimeout):
		return errNotStored
	default:
		err = sp.join(ctx, c)
	}
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case mine && !sp.isBeingWritten(c.ID), !mine && away >= control.HomeTimeout:
		return sp.lose(ctx, c.ID, err)
	}
	return errNotStored
}
