package turnlog

import (
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/turn"
)

// Tell tells who follows a conversation what passes in it: who has the floor,
// where that changed, and the words of the caller's turn that goes on. The event
// is hushed.
func Tell(to pipeline.Watcher, before, now turn.State, e turn.Event, number int) {
	f, ok := to.(pipeline.Follower)
	if !ok {
		return
	}
	if now != before {
		f.Stands(string(now))
	}
	if e.Kind == turn.Heard && e.Text != "" {
		f.Saying(pipeline.RoleCaller, pipeline.Clean(e.Text), number)
	}
}
