package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
)

type keyed func(w http.ResponseWriter, r *http.Request, key apikeys.Key) error

// A scoped handler serves keys that have one of its scopes, and keys without scopes, which may use the whole API.
type scoped struct {
	handle keyed
	scopes []apikeys.Scope
	// since and sunset are set for a deprecated route: the day from which it is deprecated, and the first day on which it
	// may be missing.
	since, sunset time.Time
}

// deprecated marks a route that will be removed. docs/api.md says how long it stays.
func (s scoped) deprecated(since, sunset time.Time) scoped {
	s.since, s.sunset = since, sunset
	return s
}

func read(h keyed) scoped  { return scoped{handle: h, scopes: []apikeys.Scope{apikeys.ScopeRead}} }
func place(h keyed) scoped { return scoped{handle: h, scopes: []apikeys.Scope{apikeys.ScopeCalls}} }

func readRoutes(h keyed) scoped {
	return scoped{handle: h, scopes: []apikeys.Scope{apikeys.ScopeRead, apikeys.ScopeCalls, apikeys.ScopeCampaigns}}
}

func readCampaigns(h keyed) scoped {
	return scoped{handle: h, scopes: []apikeys.Scope{apikeys.ScopeRead, apikeys.ScopeCampaigns}}
}

func writeCampaigns(h keyed) scoped {
	return scoped{handle: h, scopes: []apikeys.Scope{apikeys.ScopeCampaigns}}
}

// serve passes the request on if its key has a scope for it.
func (s scoped) serve(w http.ResponseWriter, r *http.Request) error {
	if !s.since.IsZero() {
		w.Header().Set("Deprecation", "@"+strconv.FormatInt(s.since.Unix(), 10)) // RFC 9745
		w.Header().Set("Sunset", s.sunset.UTC().Format(http.TimeFormat))         // RFC 8594
		w.Header().Set("Link", `</docs/guide/reference/api#versions>; rel="deprecation"; type="text/html"`)
	}
	key, _ := r.Context().Value(keyOf{}).(apikeys.Key)
	if !key.Allows(s.scopes...) {
		return control.Refuse(control.CodeKeyScope, "this API key has the scopes "+apikeys.JoinScopes(key.Scopes)+"; the request needs one of: "+
			apikeys.JoinScopes(s.scopes))
	}
	return s.handle(w, r, key)
}
