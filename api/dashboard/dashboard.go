// Package dashboard is what operators see and do in a browser: the rooms of it, in
// their order. All of it is embedded; pages load nothing from elsewhere.
package dashboard

import (
	"log/slog"
	"net/http"

	"github.com/parley-voice/parley/api/dashboard/frame"
	"github.com/parley-voice/parley/api/dashboard/keys"
	"github.com/parley-voice/parley/control/db"
)

// A Dashboard is made of what the rest of the service is made of. Its fields are
// set once.
type Dashboard struct {
	DB *db.DB
	// Root is the name of the organization whose owners look after what all share.
	Root string
	// PublicURL is where browsers reach the service: http or https.
	PublicURL string
	Log       *slog.Logger
}

// Frame puts the rooms together.
func (d *Dashboard) Frame() (*frame.Frame, error) {
	f := &frame.Frame{DB: d.DB, Root: d.Root, PublicURL: d.PublicURL, Log: d.Log}
	for _, open := range []func() (frame.Room, error){
		keys.Keys{}.Room,
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
