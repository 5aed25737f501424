package main

import (
	"context"
	"strings"

	"github.com/parley-voice/parley/api"
	"github.com/parley-voice/parley/api/dashboard"
	"github.com/parley-voice/parley/api/dashboard/live"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/bench/demo"
	campaignstore "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/uploads"
	"github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/store"
)

func (srv *server) addDashboard(ctx context.Context, server *api.Server) error {
	if !srv.config.Dashboard {
		return nil
	}
	key, err := store.SharedKey(ctx, srv.db.Pool, "forms")
	if err != nil {
		return err
	}
	options := applyOptions(srv.config)
	options.Providers = srv.agents.providers
	d := &dashboard.Dashboard{
		DB: srv.db, Key: key, Root: srv.config.RootOrg, PublicURL: srv.publicURL, RequireCodes: srv.config.RequireCodes,
		Apply: options, TrunkStatus: srv.ua.TrunkStatus, Lists: srv.dnc, Log: srv.log,
		Calls: server.Calls, Campaigns: server.Campaigns, Recordings: server.Recordings, Store: srv.store, Bucket: srv.spool.Bucket,
		Stopping:  func() bool { return !srv.node.Accepting() },
		Providers: srv.providerStatus,
		Agents:    srv.agents.providers,
		Choices:   srv.providers.choices,
		Tester:    agents.Playground{Agent: srv.agent, Egress: srv.store.Egress, Client: srv.store.HTTPClient},
		Checks:    setupChecks{srv},
	}
	if d.Identity, err = identityProvider(srv.config.Identity, srv.publicURL, key); err != nil {
		return err
	}
	srv.imports = &uploads.Imports{
		Pool: srv.db.Pool, Service: srv.campaigns,
		Uploads: &uploads.Uploads{Sources: &campaignstore.ImportFiles{Pool: srv.db.Pool, Bucket: d.Bucket}, Bucket: d.Bucket},
		Admit:   server.Campaigns.ReadList, Wake: srv.notifications.Subscribe(uploads.Channel), Log: srv.log,
	}
	d.Imports = srv.imports
	server.Dashboard, err = d.Handler()
	return err
}

// identityProvider returns the provider that verifies operators, or nil.
func identityProvider(settings identity.Settings, publicURL string, key []byte) (*identity.Provider, error) {
	if err := settings.Check(); err != nil {
		return nil, configError{err}
	}
	if settings.Issuer == "" {
		return nil, nil //nolint:nilnil // nil: operators use passwords
	}
	return &identity.Provider{Settings: settings, Redirect: strings.TrimSuffix(publicURL, "/") + ui.CallbackPath, Key: key}, nil
}

// providerStatus returns the state of each provider that calls have used.
func (srv *server) providerStatus() []live.Provider {
	var all []live.Provider
	for _, s := range srv.agent.Guards.Statuses() {
		all = append(all, live.Provider{
			Kind: s.Kind, Name: s.Name, OrgID: s.OrgID, Active: s.Active, Limit: s.Limit, Open: s.Open, Probing: s.Probing, Until: s.Until,
		})
	}
	return all
}

// demoOperator creates the demo's operator, or resets the operator's password, and returns the password.
func demoOperator(ctx context.Context, srv *server) (string, error) {
	org, err := apikeys.FindOrganization(ctx, srv.db.Pool, demo.Organization)
	if err != nil {
		return "", err
	}
	password := operator.NewPassword()
	if m, unknown := operator.Find(ctx, srv.db.Pool, org, demo.Operator); unknown == nil {
		return string(password), operator.SetPassword(ctx, srv.db.Pool, m.ID, password)
	}
	owner := operator.NewMember{Email: demo.Operator, OrgID: org, Role: operator.Owner, Password: password}
	_, _, err = operator.Create(ctx, srv.db.Pool, owner)
	return string(password), err
}
