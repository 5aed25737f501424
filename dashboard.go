package main

import (
	"context"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/dashboard"
	"github.com/parley-voice/parley/api/dashboard/live"
	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/operator"
)

// showDashboard builds the operator's pages, unless they are switched off.
func (h *house) showDashboard(ctx context.Context, server *api.Server) error {
	if !h.config.Dashboard {
		return nil
	}
	key, err := h.store.SharedKey(ctx, "forms")
	if err != nil {
		return err
	}
	d := &dashboard.Dashboard{
		DB: h.db, Key: key, Root: h.config.RootOrg, PublicURL: h.publicURL, Apply: applyOptions(h.config), Talk: h.config.Talk, Standing: h.ua.Standing, Lists: h.lists, Log: h.log,
		Calls: server.Calls, Campaigns: server.Campaigns, Recordings: server.Recordings, Store: h.store, Bucket: h.spool.Bucket,
		Leaving:   func() bool { return !h.node.Accepting() },
		Providers: h.standings,
		Check:     func(d agents.Definition) error { return h.agent.Check(d.Speech) },
	}
	server.Dashboard, err = d.Handler()
	return err
}

// standings are the providers that agents asked.
func (h *house) standings() []live.Provider {
	does := map[string]string{"asr": "hears", "llm": "thinks", "tts": "speaks"}
	var all []live.Provider
	for _, s := range h.agent.Guards.Standings() {
		all = append(all, live.Provider{Does: does[s.Seam], Name: s.Name, Asked: s.Asked, Most: s.Most, Open: s.Open, Tried: s.Tried, Until: s.Until})
	}
	return all
}

// demoOperator has the demo's operator sign in with a new password.
func demoOperator(ctx context.Context, h *house) (string, error) {
	org, err := access.FindOrganization(ctx, h.db.Pool, "demo")
	if err != nil {
		return "", err
	}
	password := operator.NewPassword()
	if m, unknown := operator.Find(ctx, h.db.Pool, org, demo.Operator); unknown == nil {
		return string(password), operator.SetPassword(ctx, h.db.Pool, m.ID, password)
	}
	_, _, err = operator.Create(ctx, h.db.Pool, operator.Newcomer{Email: demo.Operator, OrgID: org, Role: operator.Owner, Password: password})
	return string(password), err
}
