package turnlog

import (
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/turn"
)

// Notify tells a StateObserver who has the floor, if that changed, and the words of the
// caller's open turn. e must be redacted.
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
