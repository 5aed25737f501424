package turnlog

import (
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/turn"
)

// Notify sends a change of state and the caller's words so far to a StateObserver. Other observers receive nothing. e
// must be redacted. number is the number of the caller's turn.
func Notify(to pipeline.Observer, before, now turn.State, e turn.Event, number int) {
	f, ok := to.(pipeline.StateObserver)
	if !ok {
		return
	}
	if now != before {
		f.OnState(string(now))
	}
	if e.Kind == turn.Transcript && e.Text != "" {
		f.OnPartial(pipeline.RoleCaller, pipeline.Clean(e.Text), number)
	}
}
