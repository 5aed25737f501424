package main

import (
	"cmp"
	"context"
	"maps"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/campaigns/campaigncli"
	"github.com/parley-voice/parley/campaigns/dialer"
	"github.com/parley-voice/parley/campaigns/dialer/pgqueue"
	"github.com/parley-voice/parley/campaigns/dnc"
	"github.com/parley-voice/parley/campaigns/marketstore"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/routehealth"
	"github.com/parley-voice/parley/campaigns/service"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admincli"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	callstore "github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/sip/proxy"
)

// openDNC opens the catalog of do-not-call registries. Single calls are also screened by it.
func (srv *server) openDNC() {
	srv.dnc = openCatalog(srv.config, srv.db, srv.spool.Bucket)
	srv.dnc.Wake, srv.dnc.Log = srv.notifications.Subscribe(dnc.Channel), srv.log
	srv.admission.Screener = &dnc.CallScreen{Catalog: srv.dnc}
}

// openCampaigns builds the campaign service and returns a queue that combines single calls
// with the contacts of campaigns.
func (srv *server) openCampaigns(at control.NodeID) control.Queue {
	c, listed, markets := srv.config, &store.Store{Pool: srv.db.Pool}, &marketstore.Store{}
	srv.campaigns = &service.Service{
		Pool: srv.db.Pool, Store: listed, Bucket: srv.spool.Bucket, Markets: markets, Registries: srv.dnc.Registries,
		MaxRows: c.CampaignRows, MaxCalls: c.BatchRows, MaxAddresses: c.WithdrawAddresses, Horizon: c.OpenHorizon,
		CanRecord: srv.agents.canRecord, CheckAgent: srv.agents.check, RecheckAgent: srv.agents.recheck,
	}
	srv.outcomes = &outcome.Recorder{Pool: srv.db.Pool, Store: listed, Log: srv.log}
	srv.optOuts = &outcome.OptOutRecorder{Pool: srv.db.Pool, Store: listed}
	srv.store.Agents = srv.agents.monitor
	srv.store.Undo = srv.outcomes.Undo
	srv.store.PausedTrunks = func() []string { return slices.Collect(maps.Keys(srv.pausedTrunks())) }
	srv.routeHealth = &routehealth.Monitor{
		Pool: srv.db.Pool, Rules: c.Breaker, Owner: at.Owner, IdleAfter: c.IdleAfter, Log: srv.log,
		Progress: srv.campaigns.Progress, CanTalk: srv.agents.monitor.IsReady, Paused: srv.pausedTrunks,
		Down: func(t trunks.Trunk) bool { return srv.ua.TrunkStatus(t.MediaTrunk()) == string(proxy.Down) },
	}
	srv.planner = &pgqueue.Planner{
		Pool: srv.db.Pool, Store: listed, Markets: markets, Owner: at.Owner,
		Wake: srv.notifications.Subscribe(store.ChannelCampaigns), Log: srv.log,
	}
	return &dialer.Queue{Queue: srv.store, Dialer: &dialer.Dialer{Store: &pgqueue.Queue{
		Pool: srv.db.DialPool, Store: listed, Claims: srv.store, Node: at, Lease: c.Lease, Log: srv.log,
		Markets: markets, Registries: srv.dnc.Registries, Screen: &dnc.CallScreen{Catalog: srv.dnc, Always: true},
		SentHash:    func(orgID, number string) [16]byte { return srv.failover.NumberHash(orgID, number) },
		Unreachable: srv.routeHealth.Unreachable, Paused: srv.isPaused,
		CanTalk: srv.agents.canCall, ProvidersVerified: srv.agents.monitor.IsVerified,
		Planned: true, Wake: srv.notifications.Subscribe(pgqueue.ChannelPlans),
	}}}
}

func (srv *server) addCampaignAPI(server *api.Server, key []byte) {
	server.Campaigns = &campaigns.Campaigns{
		Service: srv.campaigns, Store: srv.campaigns.Store, Keys: srv.keys, Schemas: server.Calls.Schemas, CursorKey: key,
	}
}

// openCatalog returns the catalog of do-not-call registries. It caches the registries in the data folder.
func openCatalog(c config.Config, d *db.DB, files dnc.Bucket) *dnc.Catalog {
	return &dnc.Catalog{Pool: d.Pool, Bucket: files, Dir: filepath.Join(c.DataDir, "registries")}
}

// terminal returns the output of campaign commands.
func (e *env) terminal() *campaigncli.Terminal {
	return &campaigncli.Terminal{Out: e.out, Errs: e.errs, Bar: func(unit string) func(done, all int) { return progressBar(e.errs, unit) }}
}

// campaignEnv returns the dependencies of campaign commands.
func (e *env) campaignEnv() (*campaigncli.Env, error) {
	c, d, files, err := e.openStores()
	if err != nil {
		return nil, err
	}
	by := "?"
	if u, unknown := user.Current(); unknown == nil {
		by = u.Username
	}
	return &campaigncli.Env{Terminal: *e.terminal(), Pool: d.Pool, Lists: openCatalog(c, d, files), By: by}, nil
}

func (e *env) apiClient() (*campaigncli.Client, error) {
	c, err := e.config()
	if err != nil {
		return nil, err
	}
	return &campaigncli.Client{
		Terminal: *e.terminal(),
		URL:      cmp.Or(c.APIURL, c.PublicURL, c.HTTPTLS.Scheme()+"://"+c.HTTPAddr),
		Key:      func() string { return string(c.APIKey) },
	}, nil
}

// callCmd has the commands of calls. Those of campaigncli use the API, those of admincli the database.
type callCmd struct {
	campaigncli.Calls
	admincli.Call
}

// signaling returns a function that reads the SIP messages of a call. The database is opened when it is called.
func (e *env) signaling() campaigncli.Signaling {
	return func(ctx context.Context, callID string) ([]callview.Rung, error) {
		d, err := e.open()
		if err != nil {
			return nil, err
		}
		defer d.Close()
		ladder, err := (&callstore.Store{Pool: d.Pool}).Signaling(ctx, callID)
		return callview.Rungs(ladder), err
	}
}
