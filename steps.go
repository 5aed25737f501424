package main

import (
	"context"
	"errors"
	"time"

	"github.com/parley-voice/parley/campaigns/follow"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/analysis"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/view"
	"github.com/parley-voice/parley/control/webhook"
)

// steps are what follows the end of a call, one after the other: when the last
// one is told, recording and analysis are settled. Contacts come first: nobody calls
// their numbers before they are told, however long a bucket is away.
func (h *house) steps(shown view.View) []control.Step {
	notify := func(kind string) *webhook.Notifier {
		return &webhook.Notifier{Type: kind, Pool: h.db.Pool, Calls: h.store, View: shown}
	}
	return []control.Step{
		{Name: "contact", Follower: &follow.Follower{
			Ledger: h.outcomes, Calls: h.store, Observe: func(o retry.Outcome) { h.metrics.Dialled(string(o)) },
		}, Anywhere: true},
		{Name: "recording", Follower: h.spool},
		{Name: "metrics", Follower: h.metrics.Follower()},
		{Name: "webhook", Follower: notify(webhook.CallEnded)},
		{Name: "analysis", Follower: &analysis.Analyst{Calls: h.store, Model: h.agent.Model, Log: h.log}, Line: control.Slow, Talked: true},
		{Name: "opt-out", Follower: &follow.OptOuts{Keep: h.optOuts, Calls: h.store}, Line: control.Slow, Talked: true},
		{Name: "verdict", Follower: &follow.Follower{Ledger: h.outcomes, Calls: h.store, Judged: true}, Line: control.Slow, Talked: true},
		{Name: "analyzed", Follower: notify(webhook.CallAnalyzed), Line: control.Slow, Talked: true},
	}
}

// tendCampaigns moves campaigns and their contacts on as time goes by.
func (h *house) tendCampaigns(ctx context.Context) {
	late := &follow.Overdue{Ledger: h.outcomes, Log: h.log}
	h.tasks.Go(func() { h.campaigns.Run(ctx, h.log) })
	h.tasks.Go(func() { late.Run(ctx) })
}

// keepHouse does hourly what nobody waits for.
func (h *house) keepHouse(ctx context.Context) {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		select {
		case <-hourly.C:
			if err := errors.Join(h.keys.Sweep(ctx), h.limiter.Sweep(ctx), operator.Sweep(ctx, h.db.Pool), h.spool.Sweep(ctx), h.keeper.Pass(ctx)); err != nil && ctx.Err() == nil {
				h.log.Warn("housekeeping", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
