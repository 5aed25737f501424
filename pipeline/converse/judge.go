package converse

import (
	"context"

	"github.com/parley-voice/parley/pipeline/eot"
	"github.com/parley-voice/parley/pipeline/turn"
)

// A Classifier judges whether a caller has finished. Its error says that the
// guess is not its own.
type Classifier interface {
	Guess(ctx context.Context, p eot.Pause) (eot.Guess, error)
}

// judge asks the classifier, in place of what it was asked before.
func (s *talk) judge(ctx context.Context, text string) {
	if s.agent.Classifier == nil {
		return
	}
	if s.judging != nil {
		s.judging()
	}
	asking, cancel := context.WithCancel(ctx)
	s.judging = cancel
	p := s.machine.Pause(text)
	s.wg.Go(func() {
		defer cancel()
		g, err := s.agent.Classifier.Guess(asking, p)
		if err != nil {
			s.log.Debug("classifier", "err", err)
			g.P = -1
		}
		s.report(asking, news{do: func(ctx context.Context) {
			s.step(ctx, turn.Event{Kind: turn.Judged, Text: text, P: g.P})
		}})
	})
}
