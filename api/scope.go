package api

import (
	"net/http"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
)

type keyed func(w http.ResponseWriter, r *http.Request, key apikeys.Key) error

// A scoped handler serves keys that have one of its scopes, and keys without scopes, which may use the whole API.
type scoped struct {
	handle keyed
	scopes []apikeys.Scope
}

func read(h keyed) scoped  { return scoped{h, []apikeys.Scope{apikeys.ScopeRead}} }
func place(h keyed) scoped { return scoped{h, []apikeys.Scope{apikeys.ScopeCalls}} }

func readRoutes(h keyed) scoped {
	return scoped{h, []apikeys.Scope{apikeys.ScopeRead, apikeys.ScopeCalls, apikeys.ScopeCampaigns}}
}

func readCampaigns(h keyed) scoped {
	return scoped{h, []apikeys.Scope{apikeys.ScopeRead, apikeys.ScopeCampaigns}}
}

func writeCampaigns(h keyed) scoped { return scoped{h, []apikeys.Scope{apikeys.ScopeCampaigns}} }

// serve passes the request on if its key has a scope for it.
func (s scoped) serve(w http.ResponseWriter, r *http.Request) error {
	key, _ := r.Context().Value(keyOf{}).(apikeys.Key)
	if !key.Allows(s.scopes...) {
		return control.Refuse(control.CodeKeyScope, "this API key has the scopes "+apikeys.JoinScopes(key.Scopes)+"; the request needs one of: "+
			apikeys.JoinScopes(s.scopes))
	}
	return s.handle(w, r, key)
}
