package pipeline

// CombineObservers returns an observer that forwards to both; other may be nil.
func CombineObservers(one, other Observer) Observer {
	if other == nil {
		return one
	}
	return observers{one, other}
}

type observers [2]Observer

// OnLine implements Observer.
func (b observers) OnLine(l Line) { b[0].OnLine(l); b[1].OnLine(l) }

// OnTurn implements Observer.
func (b observers) OnTurn(t Turn) { b[0].OnTurn(t); b[1].OnTurn(t) }

// OnState implements StateObserver.
func (b observers) OnState(state string) {
	for _, w := range b {
		if f, ok := w.(StateObserver); ok {
			f.OnState(state)
		}
	}
}

// OnPartial implements StateObserver.
func (b observers) OnPartial(role Role, text string, turn int) {
	for _, w := range b {
		if f, ok := w.(StateObserver); ok {
			f.OnPartial(role, text, turn)
		}
	}
}
