package turns

import (
	"context"
	"io"

	"github.com/parley-voice/parley/bench/gateway"
	"github.com/parley-voice/parley/bench/scenario"
	"github.com/parley-voice/parley/bench/webcaller"
	"github.com/parley-voice/parley/media"
)

// overWeb runs the calls over WebRTC. Web callers join them on a full server.
func (s *session) overWeb(ctx context.Context, plan []scenario.Call, warm *scenario.Call) ([]gateway.Result, error) {
	addr, end, err := s.fakes(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	h := webcaller.Runner{Child: s.Child, Fakes: addr, AtATime: s.Calls, Stagger: stagger, Logs: s.Logs, Late: &s.late, Log: s.Log}
	if h.Log == nil {
		h.Log = io.Discard
	}
	if warm != nil {
		v := s.webCall(*warm)
		h.Warm = &v
	}
	var all []webcaller.Call
	for _, c := range plan {
		all = append(all, s.webCall(c))
	}
	return h.Run(ctx, all)
}

// webCall returns c as a web call.
func (s *session) webCall(c scenario.Call) webcaller.Call {
	v := webcaller.Call{ID: c.ID, Words: c.Words}
	v.Talk = func(ctx context.Context, leg media.Leg) { s.perform(ctx, leg, s.calls[c.ID]) }
	if s.Scenario != nil {
		v.Codecs = s.Scenario.Codecs()
	}
	return v
}
