package main

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/overview"
	"github.com/parley-voice/parley/control/store"
)

// start starts the goroutines of the server. close waits for them.
func (srv *server) start(ctx context.Context) {
	counts := &overview.Follower{Pool: srv.db.Pool, Locate: numberZone(), Log: srv.log}
	words := &store.WordIndexer{Pool: srv.db.Pool, Log: srv.log}
	for _, run := range []func(context.Context){
		srv.notifications.Run, srv.linkKey.Run, srv.queueNotifier.Run, srv.followers.Run, srv.sender.Run, srv.spool.Run,
		srv.dnc.Run, srv.routeHealth.Run, srv.agents.monitor.Run, srv.providers.follower.Run, srv.runHourly, srv.metrics.Run,
		srv.channels.Run, srv.planner.Run, counts.Run, words.Run,
	} {
		srv.tasks.Go(func() { run(ctx) })
	}
	if srv.imports != nil {
		srv.tasks.Go(func() { srv.imports.Run(ctx) })
	}
	srv.runCampaigns(ctx)
	srv.runTrunks(ctx)
	srv.node.Start(ctx)
	srv.http.start(&srv.tasks)
}

// newLoadLimit returns the limit of calls by the load of this machine; nil if it is off.
func newLoadLimit(c config.Config) *control.LoadLimit {
	if !c.LimitLoad {
		return nil
	}
	return &control.LoadLimit{Processors: float64(runtime.GOMAXPROCS(0))}
}

// sampleLoad returns the load of this process.
func (srv *server) sampleLoad() control.LoadSample {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil { // fails only with invalid arguments
		srv.log.Warn("failed to read the CPU time", "err", err)
	}
	ticks := srv.clock.Stats()
	return control.LoadSample{
		CPU:   time.Duration(used.Utime.Nano() + used.Stime.Nano()),
		Ticks: ticks.Ticks + ticks.Skipped, Late: ticks.Late + ticks.Skipped,
	}
}

// drain stops claiming calls. Health checks and carriers can see that the server drains. Live calls continue, and the
// API still answers.
func (srv *server) drain() {
	srv.node.Drain()
	srv.ua.Drain()
}

// settleTime is the maximum wait for events and webhooks after the last call.
const settleTime = 5 * time.Second

// stop drains and waits for live calls until ctx ends. Then it ends the remaining calls and closes the server.
func (srv *server) stop(ctx context.Context) {
	srv.drain()
	srv.node.Stop(ctx)
	srv.awaitDeliveries()
	srv.announceEnd()
	srv.close()
}

// awaitDeliveries waits up to settleTime for the recordings and webhooks of the last calls. The next start processes
// the rest.
func (srv *server) awaitDeliveries() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := store.PendingWork(ctx, srv.db.Pool, srv.node.ID.Home)
		if err != nil || n == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			srv.log.Warn("events and webhooks left for the next start", "count", n)
			return
		}
	}
}

// close closes every component before the components that it uses. Nothing is lost, because the next start continues
// with the data in the database and the spool.
func (srv *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	srv.http.close(ctx)
	srv.web.close()
	if srv.stopTrunks != nil {
		srv.stopTrunks()
	}
	if srv.ua != nil {
		if err := srv.ua.Close(ctx); err != nil {
			srv.log.Warn("failed to close SIP: carriers did not answer in time", "err", err)
		}
	}
	srv.cancel()
	srv.tasks.Wait()
	if err := srv.tracer.Close(); err != nil {
		srv.log.Warn("failed to close the export of traces", "err", err)
	}
	if srv.failover != nil {
		if err := srv.failover.Journal.Close(); err != nil {
			srv.log.Warn("failed to close the journal", "err", err)
		}
	}
	if srv.transport != nil {
		srv.transport.Close()
	}
	if srv.providers.Registry != nil {
		_ = srv.providers.Close() // only idle connections are open
	}
	if srv.fakes != nil {
		_ = srv.fakes.Close() // only loopback addresses
	}
	if srv.db != nil {
		srv.db.Close()
	}
}
