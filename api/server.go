// Package api is the HTTP server: /v1 with API keys, the schema and its explorer,
// recordings, and health checks.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/admin"
	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/docs"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/budget"
)

// A Server serves HTTP.
type Server struct {
	Keys       *apikeys.Keys
	Limiter    *apikeys.Limiter
	Calls      *calls.Calls
	Routes     *calls.Routes
	Admin      *admin.Admin
	Campaigns  *campaigns.Campaigns
	Recordings *recordings.Recordings
	// Dashboard serves /dashboard; nil disables it.
	Dashboard http.Handler
	// Docs serves the documentation under /docs/guide and the changelog; nil disables it.
	Docs *docs.Docs
	// RateLimit is the default of requests per minute and key; 0 means 60.
	// apikeys.RateOff disables all limits, also those of keys.
	RateLimit int
	// PublicURL is the address of the service in the OpenAPI document.
	PublicURL string
	// Ready returns why the process is not ready; nil if it is ready.
	Ready func(context.Context) error
	// Room returns how many calls this node can start.
	Room func() control.Room
	// Observe, if set, receives the route pattern, status and duration of each response.
	Observe func(route, method string, status int, took time.Duration)
	// Timeout limits a /v1 request, not counting the wait of an end request; 0 means 10 s. Lists
	// get 12 times that. Later requests get 503.
	Timeout time.Duration
	// Budget limits the memory of request bodies; nil uses the default size.
	Budget *budget.Budget
	Log    *slog.Logger
}

// EndRoute is the route whose requests wait for the end of a call.
const EndRoute = "/v1/calls/{id}/end"

// listRoute is the route of list uploads, which get a multiple of the timeout.
const (
	listRoute = "/v1/campaigns"
	listShare = 12
)

// Handler returns the handler of all routes. It fails if the OpenAPI document cannot be
// built.
func (s *Server) Handler() (http.Handler, error) {
	s.setDefaults()
	mux := http.NewServeMux()
	if err := s.addDocuments(mux); err != nil {
		return nil, err
	}
	v1 := func(path string, by map[string]scoped) {
		open := methods{}
		for method, h := range by {
			open[method] = h.serve
		}
		mux.Handle(path, s.byMethod(open))
	}
	c := s.Calls
	v1("/v1/dialing-routes", map[string]scoped{"GET": readRoutes(s.Routes.List)})
	s.addAdmin(v1)
	v1("/v1/calls/phone", map[string]scoped{"POST": place(c.Create)})
	v1("/v1/calls/web", map[string]scoped{"POST": place(c.CreateWeb)})
	v1("/v1/calls", map[string]scoped{"GET": read(c.List)})
	v1("/v1/calls/{id}", map[string]scoped{"GET": read(c.Get)})
	v1("/v1/calls/{id}/turns", map[string]scoped{"GET": read(c.Turns)})
	v1(EndRoute, map[string]scoped{"POST": place(c.End)})
	k := s.Campaigns
	v1("/v1/campaigns", map[string]scoped{"POST": writeCampaigns(k.Create), "GET": readCampaigns(k.List)})
	v1("/v1/campaigns/{id}", map[string]scoped{"GET": readCampaigns(k.Get)})
	v1("/v1/campaigns/{id}/launch-check", map[string]scoped{"GET": readCampaigns(k.LaunchCheck)})
	v1("/v1/campaigns/{id}/launch", map[string]scoped{"POST": writeCampaigns(k.Launch)})
	v1("/v1/campaigns/{id}/pause", map[string]scoped{"POST": writeCampaigns(k.Pause)})
	v1("/v1/campaigns/{id}/resume", map[string]scoped{"POST": writeCampaigns(k.Resume)})
	v1("/v1/campaigns/{id}/cancel", map[string]scoped{"POST": writeCampaigns(k.Cancel)})
	v1("/v1/campaigns/{id}/budget", map[string]scoped{"POST": writeCampaigns(k.SetBudget)})
	v1("/v1/campaigns/{id}/calls", map[string]scoped{"POST": writeCampaigns(k.Add)})
	v1("/v1/campaigns/{id}/progress", map[string]scoped{"GET": readCampaigns(k.Progress)})
	v1("/v1/contacts/withdraw", map[string]scoped{"POST": writeCampaigns(k.Withdraw)})
	v1("/v1/imports/{id}", map[string]scoped{"GET": readCampaigns(k.Import)})
	v1("/v1/imports/{id}/report", map[string]scoped{"GET": readCampaigns(k.Report)})

	if s.Docs != nil {
		for _, path := range []string{"/docs/guide", "/docs/guide/", "/docs/changelog"} {
			mux.Handle(path, s.byMethod(methods{"GET": s.Docs.Serve}))
		}
	}
	mux.Handle("/healthz", s.byMethod(methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		response.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return nil
	}}))
	mux.Handle("/readyz", s.byMethod(methods{"GET": s.ready}))
	if s.Recordings != nil {
		mux.Handle("/recordings/{file}", s.byMethod(methods{"GET": s.Recordings.Serve}))
	}
	if s.Dashboard != nil {
		mux.Handle("/{$}", http.HandlerFunc(s.home))
		mux.Handle("/dashboard", s.Dashboard)
		mux.Handle("/dashboard/", s.Dashboard)
	}
	mux.Handle("/", s.byMethod(nil))
	return s.wrap(mux), nil
}

// home redirects browsers to the dashboard; other clients get 404.
func (s *Server) home(w http.ResponseWriter, r *http.Request) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.byMethod(nil).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept")
	http.Redirect(w, r, "/dashboard", http.StatusFound)
}

func (s *Server) setDefaults() {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Budget == nil {
		s.Budget = &budget.Budget{}
	}
	s.Campaigns.Budget = s.Budget
}

func (s *Server) addAdmin(v1 func(path string, by map[string]scoped)) {
	a := s.Admin
	only := func(h admin.Handler) scoped {
		return scoped{handle: keyed(a.Only(h)), scopes: []apikeys.Scope{apikeys.ScopeAdmin}}
	}
	v1("/v1/admin/organizations", map[string]scoped{"GET": only(a.ListOrganizations), "POST": only(a.CreateOrganization)})
	v1("/v1/admin/organizations/{id}", map[string]scoped{"GET": only(a.ReadOrganization), "PATCH": only(a.ChangeOrganization)})
	v1("/v1/admin/market-packages", map[string]scoped{"GET": only(a.ListMarketPackages)})
	v1("/v1/admin/keys", map[string]scoped{"GET": only(a.ListKeys), "POST": only(a.CreateKey)})
	v1("/v1/admin/keys/{id}", map[string]scoped{"GET": only(a.ReadKey), "PATCH": only(a.ChangeKey)})
	v1("/v1/admin/keys/{id}/revoke", map[string]scoped{"POST": only(a.RevokeKey)})
	v1("/v1/admin/webhooks", map[string]scoped{"GET": only(a.ListWebhooks), "POST": only(a.SaveWebhook)})
	v1("/v1/admin/webhooks/{id}", map[string]scoped{"DELETE": only(a.RemoveWebhook)})
}

type readiness struct {
	Status string       `json:"status"`
	Room   int          `json:"room"`           // calls that this node can start now
	Held   control.Hold `json:"held,omitempty"` // why it can start none
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := s.Ready(ctx); err != nil {
			s.Log.WarnContext(ctx, "not ready", "err", err)
			return &response.PlainError{Status: http.StatusServiceUnavailable, Message: "not ready"}
		}
	}
	state := readiness{Status: "ready"}
	if s.Room != nil {
		room := s.Room()
		state.Room, state.Held = room.Free, room.Hold
	}
	response.JSON(w, http.StatusOK, state)
	return nil
}
