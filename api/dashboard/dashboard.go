// Package dashboard assembles the pages of operators. All files are embedded; pages load
// nothing from other hosts.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"

	callsapi "github.com/parley-voice/parley/api/calls"
	campaignsapi "github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/dashboard/access"
	"github.com/parley-voice/parley/api/dashboard/agents"
	"github.com/parley-voice/parley/api/dashboard/calls"
	"github.com/parley-voice/parley/api/dashboard/campaigns"
	doNotCall "github.com/parley-voice/parley/api/dashboard/dnc"
	"github.com/parley-voice/parley/api/dashboard/live"
	"github.com/parley-voice/parley/api/dashboard/settings"
	"github.com/parley-voice/parley/api/dashboard/trunks"
	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/api/dashboard/webhooks"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/campaigns/dnc"
	campaignstore "github.com/parley-voice/parley/campaigns/store"
	"github.com/parley-voice/parley/campaigns/uploads"
	definitions "github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/identity"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/media"
)

// A Dashboard holds the services behind the pages. Its fields are set once.
type Dashboard struct {
	DB *db.DB
	// Key is ui.Frame.Key.
	Key []byte
	// Root is the name of the organization whose owners manage shared data.
	Root string
	// PublicURL is where browsers reach the service: http or https.
	PublicURL string
	// Identity verifies operators; nil: they sign in with passwords only.
	Identity *identity.Provider
	// RequireCodes makes operators who sign in with a password turn on one-time codes.
	RequireCodes bool
	// Apply holds the options for edits; nothing is pruned.
	Apply apply.Options
	// Agents checks the providers of agents; nil skips the checks.
	Agents definitions.ProviderChecker
	// Choices and Tester are those of agents.Agents.
	Choices func(ctx context.Context, q db.Querier, orgID string) ([]definitions.Choice, error)
	Tester  agents.Tester
	// Checks tests carriers and providers for the set-up; nil skips these tests.
	Checks live.Checks
	// Lists holds the do-not-call lists.
	Lists *dnc.Catalog
	// Calls, Campaigns and Recordings are shared with the API.
	Calls      *callsapi.Calls
	Campaigns  *campaignsapi.Campaigns
	Recordings *recordings.Recordings
	Store      *store.Store
	// Bucket stores uploaded lists until their campaign is created.
	Bucket recording.Bucket
	// Imports creates campaigns of large lists in the background; nil creates them at once.
	Imports *uploads.Imports
	// TrunkStatus returns the state of a trunk; nil means that no state is known. Stopping reports
	// whether the server is about to stop; nil means never.
	TrunkStatus func(media.Trunk) string
	Stopping    func() bool
	// Providers returns the providers used on this server; nil means that none are known.
	Providers func() []live.Provider
	// Texts are the texts of all pages; nil means English.
	Texts *ui.Texts
	Log   *slog.Logger
}

// Frame assembles the modules in navigation order.
func (d *Dashboard) Frame() (*ui.Frame, error) {
	f := &ui.Frame{DB: d.DB, Key: d.Key, Root: d.Root, PublicURL: d.PublicURL, Apply: d.Apply, Log: d.Log}
	f.Identity, f.RequireCodes, f.Texts = d.Identity, d.RequireCodes, d.Texts
	people := access.People{}
	if d.Identity != nil {
		people = access.People{OnlyIdentity: d.Identity.Only, Provider: d.Identity.Host()}
	}
	currency := pricing.CurrencyOf(d.Store.Prices)
	work := &campaigns.Campaigns{
		API: d.Campaigns, Calls: d.Store, Imports: d.Imports, Currency: currency,
		Uploads: &uploads.Uploads{Sources: &campaignstore.ImportFiles{Pool: d.DB.Pool, Bucket: d.Bucket}, Bucket: d.Bucket},
	}
	idle := func(r *ui.Request, ids []string) ([]campaigns.Idle, error) { return campaigns.FindIdle(work, r, ids) }
	for _, open := range []func() (ui.Module, error){
		(&live.Live{
			Campaigns: d.Campaigns.Store, Calls: d.Calls, TrunkStatus: d.TrunkStatus, Stopping: d.Stopping, Providers: d.Providers,
			Currency: currency, Agents: d.Agents, Checks: d.Checks, Idle: idle,
		}).Module,
		work.Module,
		(&calls.Calls{API: d.Calls, Store: d.Store, Recordings: d.Recordings}).Module,
		agents.Agents{Calls: d.Calls, Providers: d.Agents, Choices: d.Choices, Tester: d.Tester}.Module,
		trunks.Trunks{TrunkStatus: d.TrunkStatus, Currency: currency}.Module,
		doNotCall.Lists{Catalog: d.Lists}.Module,
		access.Keys{}.Module,
		webhooks.Webhooks{DB: d.DB, AllowInsecure: d.Apply.AllowInsecure}.Module,
		settings.Settings{Currency: currency}.Module,
		people.Module,
	} {
		module, err := open()
		if err != nil {
			return nil, err
		}
		f.Modules = append(f.Modules, module)
	}
	return f, nil
}

// Handler returns the handler of /dashboard.
func (d *Dashboard) Handler() (http.Handler, error) {
	f, err := d.Frame()
	if err != nil {
		return nil, err
	}
	return f.Handler()
}
