package conversation

import (
	"context"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/playout"
)

// disclosureTime bounds the time to the first sound of a disclosure. If the disclosure is not audible by then, the
// call ends.
const disclosureTime = 5 * time.Second

// disclose plays the disclosure and then calls then. If the disclosure was already played to its end, disclose only
// calls then. During the disclosure the turn machine is Held, so that the callee cannot interrupt it.
func (g *greeter) disclose(ctx context.Context, then func()) {
	s := g.s
	if g.next = then; s.config.Disclosure == "" || g.disclosed {
		then()
		return
	}
	if g.disclosure == nil { // cancelDisclosure stopped it, because a machine had answered
		g.disclosure = g.sayFirst(ctx, s.config.Disclosure)
	}
	g.onVerdict()
	g.disclosure.release()
	s.later(ctx, disclosureTime, func(ctx context.Context) {
		if r := g.disclosure; r != nil && r.Played() == 0 {
			s.onReplyFailure(ctx, update{of: r.Utterance, err: errStalled})
		}
	})
	if s.config.Greeting != "" && s.replies.current == nil {
		s.replies.current = s.speaker.sayText(ctx, s.config.Greeting)
	}
}

func (g *greeter) isDisclosure(u *playout.Utterance) bool {
	return g.disclosure != nil && g.disclosure.Utterance == u
}

func (g *greeter) onMark(ctx context.Context, m playout.Mark) {
	s, current := g.s, g.s.record.current
	if !m.Ended {
		if current != nil {
			current.Audible = m.At
		}
		if g.detector != nil {
			g.detector.OnAgentStart(s.since(m.At))
		}
		return
	}
	if current != nil && !current.Audible.IsZero() {
		current.Disclosed = time.Since(current.Audible)
	}
	s.record.addAgentLine(g.disclosure.Utterance, true, true)
	g.disclosure, g.disclosed = nil, true
	if s.replies.current == nil {
		s.replies.end(pipeline.Answered, true)
	}
	s.later(ctx, partPause, func(context.Context) { g.next() })
}

// cancelDisclosure stops a disclosure that is being played, for example because a machine answered. It also drops the
// greeting: a person who then takes the call speaks first.
func (g *greeter) cancelDisclosure() {
	if g.next = func() {}; g.disclosure == nil {
		return
	}
	g.s.speaker.stop()
	g.disclosure.cancel()
	g.s.record.addAgentLine(g.disclosure.Utterance, false, true)
	if g.disclosure.Played() == 0 {
		g.s.record.current = nil
	}
	g.disclosure = nil
	g.s.config.Greeting = ""
}
