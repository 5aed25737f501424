package main

import (
	"cmp"
	"context"
	"os/user"
	"path/filepath"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/campaigns/book"
	"github.com/parley-voice/parley/campaigns/command"
	"github.com/parley-voice/parley/campaigns/desk"
	"github.com/parley-voice/parley/campaigns/dialler"
	"github.com/parley-voice/parley/campaigns/lists"
	"github.com/parley-voice/parley/campaigns/optout"
	"github.com/parley-voice/parley/campaigns/outcome"
	"github.com/parley-voice/parley/campaigns/packages"
	"github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/watch"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/pipeline/tools"
	"github.com/parley-voice/parley/sip/proxy"
)

// openLists opens the do-not-call lists, and has single calls held against them.
func (h *house) openLists() {
	h.lists = shelf(h.config, h.db, h.spool.Bucket)
	h.lists.Wake, h.lists.Log = h.bell.On(lists.Bell), h.log
	h.desk.Screen = &lists.Single{Shelf: h.lists}
}

// openCampaigns builds campaigns: their desk, and what dials them beside the dial
// queue of single calls.
func (h *house) openCampaigns(at control.Place) control.Queue {
	c, listed, markets := h.config, &store.Store{Pool: h.db.Pool}, &packages.Packages{}
	h.campaigns = &desk.Desk{
		Pool: h.db.Pool, Store: listed, Bucket: h.spool.Bucket, Markets: markets, Registries: h.lists.Registries,
		MostRows: c.CampaignRows, MostCalls: c.BatchRows, MostAddresses: c.WithdrawAddresses, Horizon: c.OpenHorizon,
	}
	h.outcomes = &outcome.Ledger{Pool: h.db.Pool, Store: listed}
	h.store.Undo, h.store.Anywhere, h.optOuts = h.outcomes.Undo, []string{"contact"}, &optout.Desk{Pool: h.db.Pool, Store: listed}
	h.routes = &watch.Watch{
		Pool: h.db.Pool, Rules: c.Breaker, Owner: at.Owner, Progress: h.campaigns.Progress, IdleAfter: c.IdleAfter, Log: h.log,
		Down: func(t trunks.Trunk) bool { return h.ua.Standing(t.Line()) == string(proxy.Down) },
	}
	return &dialler.Queue{Queue: h.store, Dialler: &dialler.Dialler{Book: &book.Book{
		Pool: h.db.Dial, Store: listed, Claims: h.store, Markets: markets, Screen: &lists.Single{Shelf: h.lists, Always: true}, Registries: h.lists.Registries,
		Place: at, Lease: c.Lease,
		Unreachable: h.routes.Unreachable, Able: h.able, Log: h.log,
	}}}
}

// able says what keeps this server from talking as a version of an agent.
func (h *house) able(ctx context.Context, agentID string, version int) error {
	d, err := agents.ReadVersion(ctx, h.db.Dial, agentID, version)
	if err == nil {
		err = h.agent.Check(d.Speech)
	}
	if err == nil {
		_, err = tools.Build(d.Definitions(), h.store.Reach, h.store.Asks)
	}
	return err
}

// showCampaigns builds the face of campaigns beside that of calls.
func (h *house) showCampaigns(server *api.Server, key []byte) {
	server.Campaigns = &campaigns.Campaigns{
		Desk: h.campaigns, Store: h.campaigns.Store, Keys: h.keys, Schemas: server.Calls.Schemas, CursorKey: key,
	}
}

// shelf is where do-not-call registries are.
func shelf(c config.Config, d *db.DB, files lists.Bucket) *lists.Shelf {
	return &lists.Shelf{Pool: d.Pool, Bucket: files, Dir: filepath.Join(c.DataDir, "registries")}
}

// terminal is what commands write to.
func (w *world) terminal() *command.Terminal {
	return &command.Terminal{Out: w.out, Errs: w.errs, Bar: func(unit string) func(done, all int) { return progressBar(w.errs, unit) }}
}

// operate opens what commands about campaigns work with.
func (w *world) operate() (*command.Desk, error) {
	c, d, files, err := w.opened()
	if err != nil {
		return nil, err
	}
	by := "?"
	if u, unknown := user.Current(); unknown == nil {
		by = u.Username
	}
	return &command.Desk{Terminal: *w.terminal(), Pool: d.Pool, Lists: shelf(c, d, files), By: by}, nil
}

// client is what commands about a running server work with.
func (w *world) client() (*command.Client, error) {
	c, err := w.config()
	if err != nil {
		return nil, err
	}
	return &command.Client{
		Terminal: *w.terminal(), URL: cmp.Or(c.APIURL, c.PublicURL, "http://"+c.HTTPAddr), Key: func() string { return string(c.APIKey) },
	}, nil
}
