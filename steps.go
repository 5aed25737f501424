package main

import (
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/analysis"
	"github.com/parley-voice/parley/control/view"
	"github.com/parley-voice/parley/control/webhook"
)

// steps are what follows the end of a call, one after the other: when the last
// one is told, recording and analysis are settled.
func (h *house) steps(shown view.View) []control.Step {
	notify := func(kind string) *webhook.Notifier {
		return &webhook.Notifier{Type: kind, Pool: h.db.Pool, Calls: h.store, View: shown}
	}
	return []control.Step{
		{Name: "recording", Follower: h.spool},
		{Name: "metrics", Follower: h.metrics.Follower(h.store)},
		{Name: "webhook", Follower: notify(webhook.CallEnded)},
		{Name: "analysis", Follower: &analysis.Analyst{Calls: h.store, Model: h.agent.Model, Log: h.log}, Line: control.Slow},
		{Name: "analyzed", Follower: notify(webhook.CallAnalyzed), Line: control.Slow},
	}
}
