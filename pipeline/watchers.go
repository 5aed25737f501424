package pipeline

// Both is a watcher that tells two; the other may be nil.
func Both(one, other Watcher) Watcher {
	if other == nil {
		return one
	}
	return both{one, other}
}

type both [2]Watcher

// Said implements Watcher.
func (b both) Said(l Line) { b[0].Said(l); b[1].Said(l) }

// Turned implements Watcher.
func (b both) Turned(t Turn) { b[0].Turned(t); b[1].Turned(t) }

// Stands implements Follower.
func (b both) Stands(state string) {
	for _, w := range b {
		if f, ok := w.(Follower); ok {
			f.Stands(state)
		}
	}
}

// Saying implements Follower.
func (b both) Saying(role Role, text string, turn int) {
	for _, w := range b {
		if f, ok := w.(Follower); ok {
			f.Saying(role, text, turn)
		}
	}
}
