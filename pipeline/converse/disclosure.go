package converse

import (
	"context"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/mouth"
)

// disclose has the disclosure said, where there is one that was not, and then
// does what comes after it. The machine waits for the floor meanwhile, so that
// nothing the party does cuts it off.
func (s *talk) disclose(ctx context.Context, then func()) {
	if s.owed = then; s.brief.Disclosure == "" || s.opened {
		then()
		return
	}
	if s.opening == nil { // a machine was told it
		s.opening = s.first(ctx, s.brief.Disclosure)
	}
	s.opening.release()
	s.later(ctx, awaited, func(ctx context.Context) {
		if r := s.opening; r != nil && r.Played() == 0 {
			s.failed(ctx, news{of: r.Utterance, err: errStalled})
		}
	})
	if s.brief.Greeting != "" && s.reply == nil {
		s.reply = s.tellText(ctx, s.brief.Greeting)
	}
}

// awaited is how long the first sound of a disclosure may take: without it there
// is no call, and nobody is kept waiting for it.
const awaited = 5 * time.Second

// later has something done by the mind, after a while.
func (s *talk) later(ctx context.Context, d time.Duration, do func(context.Context)) {
	s.wg.Go(func() {
		select {
		case <-time.After(d):
			s.report(ctx, news{do: do})
		case <-ctx.Done():
		}
	})
}

// disclosing is told that the disclosure became audible, or was said.
func (s *talk) disclosing(ctx context.Context, m mouth.Mark) {
	if !m.Said {
		if s.current != nil {
			s.current.Audible = m.At
		}
		if s.watch != nil {
			s.watch.Begins(s.since(m.At))
		}
		return
	}
	s.tellAgent(s.opening.Utterance, true, true)
	s.opening, s.opened = nil, true
	if s.reply == nil {
		s.end(pipeline.Answered, true)
	}
	s.later(ctx, breath, func(context.Context) { s.owed() })
}

// undisclosed gives up a disclosure that is being said: nobody is there to hear
// it.
func (s *talk) undisclosed() {
	if s.owed = func() {}; s.opening == nil {
		return
	}
	s.mouth.Drop(s.next + 1)
	s.opening.cancel()
	s.tellAgent(s.opening.Utterance, false, true)
	if s.opening.Played() == 0 {
		s.current = nil
	}
	s.opening = nil
	s.brief.Greeting = "" // it is said to the first who answers alone
}
