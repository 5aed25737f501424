package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/campaigns/market"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/retry"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/analysis"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/tracing"
	"github.com/parley-voice/parley/control/webhook"
)

// takeoverStep is the name of the step that stores the recording of a call whose node is lost.
const takeoverStep = "takeover"

// endSteps returns the steps after the end of a call, in order. Contacts come first: a number is not called again
// before its outcome is recorded, even if the bucket is unavailable. The event call_analyzed is sent after the
// recording and the analysis are final.
func (srv *server) endSteps(shown callview.View) []control.Step {
	notify := func(kind string) *webhook.Notifier {
		return &webhook.Notifier{Type: kind, Pool: srv.db.Pool, Calls: srv.store, View: shown}
	}
	steps := []control.Step{
		{Name: "contact", Handler: &outcome.Follower{
			Recorder: srv.outcomes, Calls: srv.store, Observe: func(o retry.Outcome) { srv.metrics.CountDial(string(o)) },
		}, AnyNode: true},
		{Name: takeoverStep, Handler: recording.Takeover{Spool: srv.spool}, AfterLoss: true},
		{Name: "recording", Handler: srv.spool},
		{Name: "traces", Handler: &tracing.Follower{Tracer: srv.tracer, Calls: srv.store, Pool: srv.db.Pool}},
		{Name: "metrics", Handler: srv.metrics.CallCounter(srv.costs())},
		{Name: "webhook", Handler: notify(webhook.CallEnded)},
		{
			Name: "analysis", Handler: &analysis.Analyst{Calls: srv.store, Model: srv.agent.Model, Usage: srv.costs(), Log: srv.log},
			Lane: control.SlowLane, ConversationOnly: true,
		},
		{
			Name: "opt-out", Handler: &outcome.OptOutFollower{Recorder: srv.optOuts, Calls: srv.store},
			Lane: control.SlowLane, ConversationOnly: true,
		},
		{
			Name: "verdict", Handler: &outcome.Follower{Recorder: srv.outcomes, Calls: srv.store, Analysis: true},
			Lane: control.SlowLane, ConversationOnly: true,
		},
		{Name: "recorded", Handler: recording.Settled{Spool: srv.spool}, Lane: control.SlowLane, ConversationOnly: true},
		{Name: "analyzed", Handler: notify(webhook.CallAnalyzed), Lane: control.SlowLane, ConversationOnly: true},
	}
	return slices.DeleteFunc(steps, func(s control.Step) bool { return s.Name == "traces" && srv.tracer == nil })
}

// numberZone returns a function that finds the time zone of numbers with an area code of the United States.
func numberZone() func(digits string) string {
	load := sync.OnceValues(func() (*market.Package, error) { return market.Load("us") }) // few commands need it
	return func(digits string) string {
		if len(digits) != 11 || digits[0] != '1' {
			return ""
		}
		rules, err := load()
		if err != nil {
			return ""
		}
		place, unknown := rules.Locate(market.Number{E164: "+" + digits}, "", "")
		if unknown != nil || place.States == nil {
			return ""
		}
		return place.Zones[0]
	}
}

// runCampaigns starts the campaign service, and the timer for contacts that wait for an analysis.
func (srv *server) runCampaigns(ctx context.Context) {
	late := &outcome.OverdueSettler{Recorder: srv.outcomes, Log: srv.log}
	srv.tasks.Go(func() { srv.campaigns.Run(ctx, srv.log) })
	srv.tasks.Go(func() { late.Run(ctx) })
}

// runHourly deletes expired rows and files every hour.
func (srv *server) runHourly(ctx context.Context) {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		select {
		case <-hourly.C:
			err := errors.Join(
				srv.agents.report(ctx), srv.keys.Sweep(ctx), srv.limiter.Sweep(ctx),
				operator.Sweep(ctx, srv.db.Pool), srv.spool.Sweep(ctx), srv.purger.PurgeDue(ctx),
			)
			if err != nil && ctx.Err() == nil {
				srv.log.Warn("failed to clean up", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
