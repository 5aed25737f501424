// Package dashboard is what operators see and do in a browser: the rooms of it, in
// their order. All of it is embedded; pages load nothing from elsewhere.
package dashboard

import (
	"log/slog"
	"net/http"

	callsapi "github.com/parley-voice/parley/api/calls"
	campaignsapi "github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/dashboard/agents"
	"github.com/parley-voice/parley/api/dashboard/calls"
	"github.com/parley-voice/parley/api/dashboard/campaigns"
	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/keys"
	doNotCall "github.com/parley-voice/parley/api/dashboard/lists"
	"github.com/parley-voice/parley/api/dashboard/live"
	"github.com/parley-voice/parley/api/dashboard/people"
	"github.com/parley-voice/parley/api/dashboard/settings"
	"github.com/parley-voice/parley/api/dashboard/trunks"
	"github.com/parley-voice/parley/api/dashboard/webhooks"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/campaigns/lists"
	"github.com/parley-voice/parley/campaigns/sources"
	"github.com/parley-voice/parley/campaigns/uploads"
	definitions "github.com/parley-voice/parley/control/agents"
	"github.com/parley-voice/parley/control/apply"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/media"
)

// A Dashboard is made of what the rest of the service is made of. Its fields are
// set once.
type Dashboard struct {
	DB *db.DB
	// Key is that of frame.Frame.
	Key []byte
	// Root is the name of the organization whose owners look after what all share.
	Root string
	// PublicURL is where browsers reach the service: http or https.
	PublicURL string
	// Apply is how what is edited is applied; nothing is pruned.
	Apply apply.Options
	// Talk are the agents that browsers may talk with at /talk.
	Talk []config.TalkAgent
	// Check says why calls of an agent could not begin here; nil does not look.
	Check func(definitions.Definition) error
	// Lists are the do-not-call lists.
	Lists *lists.Shelf
	// Calls, Campaigns and Recordings are the API's: pages do what it does.
	Calls      *callsapi.Calls
	Campaigns  *campaignsapi.Campaigns
	Recordings *recordings.Recordings
	Store      *store.Store
	// Bucket keeps lists while a campaign is made of them.
	Bucket recording.Bucket
	// Standing says how it stands with a trunk; nil knows of none. Leaving tells that
	// the server is about to stop; nil is never.
	Standing func(media.Trunk) string
	Leaving  func() bool
	// Providers are those that agents asked on this server; nil knows of none.
	Providers func() []live.Provider
	Log       *slog.Logger
}

// Frame puts the rooms together.
func (d *Dashboard) Frame() (*frame.Frame, error) {
	f := &frame.Frame{DB: d.DB, Key: d.Key, Root: d.Root, PublicURL: d.PublicURL, Apply: d.Apply, Log: d.Log}
	for _, open := range []func() (frame.Room, error){
		(&live.Live{Campaigns: d.Campaigns.Store, Standing: d.Standing, Leaving: d.Leaving, Providers: d.Providers}).Room,
		(&campaigns.Campaigns{API: d.Campaigns, Uploads: &uploads.Uploads{Sources: &sources.Sources{Pool: d.DB.Pool, Bucket: d.Bucket}, Bucket: d.Bucket}}).Room,
		(&calls.Calls{API: d.Calls, Store: d.Store, Recordings: d.Recordings}).Room,
		agents.Agents{Calls: d.Calls, Talk: d.Talk, Check: d.Check}.Room,
		trunks.Trunks{Standing: d.Standing}.Room,
		doNotCall.Lists{Shelf: d.Lists}.Room,
		keys.Keys{}.Room,
		webhooks.Webhooks{DB: d.DB, AllowInsecure: d.Apply.AllowInsecure}.Room,
		settings.Settings{}.Room,
		people.People{}.Room,
	} {
		room, err := open()
		if err != nil {
			return nil, err
		}
		f.Rooms = append(f.Rooms, room)
	}
	return f, nil
}

// Handler serves /dashboard and all below it.
func (d *Dashboard) Handler() (http.Handler, error) {
	f, err := d.Frame()
	if err != nil {
		return nil, err
	}
	return f.Handler()
}
