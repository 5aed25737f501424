package scenario

import (
	"context"
	"io"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/script"
	"github.com/parley-voice/parley/bench/visit"
	"github.com/parley-voice/parley/media"
)

// visited has visitors join the calls, over WebRTC, at a server of their own.
func (s *stage) visited(ctx context.Context, plan []script.Call, warm *script.Call) ([]gateway.Result, error) {
	addr, end, err := s.fakes(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	h := visit.House{Child: s.Child, Fakes: addr, AtATime: s.Calls, Stagger: stagger, Logs: s.Logs, Late: &s.late, Log: s.Log}
	if h.Log == nil {
		h.Log = io.Discard
	}
	if warm != nil {
		v := s.visit(*warm)
		h.Warm = &v
	}
	var all []visit.Visit
	for _, c := range plan {
		all = append(all, s.visit(c))
	}
	return h.Hold(ctx, all)
}

// visit is a call as a visitor's.
func (s *stage) visit(c script.Call) visit.Visit {
	v := visit.Visit{ID: c.ID, Words: c.Words}
	v.Talk = func(ctx context.Context, leg media.Leg) { s.perform(ctx, leg, s.calls[c.ID]) }
	if s.Scene != nil {
		v.Codecs = s.Scene.Codecs()
	}
	return v
}
