// Package api is the HTTP face of the service: /v1 behind API keys, and beside
// it the schema, its explorer, recordings and the health of the process.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/parley-voice/parley/api/admin"
	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/docs"
	"github.com/parley-voice/parley/api/openapi"
	"github.com/parley-voice/parley/api/recordings"
	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/routes"
	"github.com/parley-voice/parley/control/access"
)

// A Server answers HTTP.
type Server struct {
	Keys       *access.Keys
	Limiter    *access.Limiter
	Calls      *calls.Calls
	Routes     *routes.Routes
	Admin      *admin.Admin
	Campaigns  *campaigns.Campaigns
	Recordings *recordings.Recordings
	// Dashboard serves /dashboard and all below it; nil is none.
	Dashboard http.Handler
	// RateLimit is the platform's requests a minute of one key; 0 means 60,
	// access.RateOff none, also for keys with a limit of their own.
	RateLimit int
	// PublicURL is the address of the service in the OpenAPI document.
	PublicURL string
	// Ready says what keeps the process from its work; nil is always ready.
	Ready func(context.Context) error
	// Observe, where set, is told of every answer: the route's pattern, the
	// status, and how long it took.
	Observe func(route, method string, status int, took time.Duration)
	// Timeout is how long a request of /v1 may take, beside the wait of an end
	// request for its call's end; 0 means 10 s, and 12 times that for a list. One
	// that takes longer, as where the database hangs, is answered 503.
	Timeout time.Duration
	Log     *slog.Logger
}

// A keyed handler serves requests of a known key.
type keyed func(w http.ResponseWriter, r *http.Request, key access.Key) error

// EndRoute is the path whose requests wait for something else than the database.
const EndRoute = "/v1/calls/{id}/end"

// listRoute is the path by which lists come; one may take so many times as long
// as another request.
const (
	listRoute = "/v1/campaigns"
	listShare = 12
)

// Handler returns the whole face. It fails where the OpenAPI document cannot
// be built.
func (s *Server) Handler() (http.Handler, error) {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	doc, err := openapi.New(s.Calls.Schemas, s.PublicURL)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	v1 := func(path string, by map[string]keyed) {
		open := methods{}
		for method, h := range by {
			open[method] = func(w http.ResponseWriter, r *http.Request) error {
				key, _ := r.Context().Value(keyOf{}).(access.Key)
				return h(w, r, key)
			}
		}
		mux.Handle(path, s.open(open))
	}
	c := s.Calls
	v1("/v1/dialing-routes", map[string]keyed{"GET": s.Routes.List})
	s.administer(v1)
	v1("/v1/calls/phone", map[string]keyed{"POST": c.Create})
	v1("/v1/calls/web", map[string]keyed{"POST": c.CreateWeb})
	v1("/v1/calls", map[string]keyed{"GET": c.List})
	v1("/v1/calls/{id}", map[string]keyed{"GET": c.Get})
	v1("/v1/calls/{id}/turns", map[string]keyed{"GET": c.Turns})
	v1(EndRoute, map[string]keyed{"POST": c.End})
	k := s.Campaigns
	v1("/v1/campaigns", map[string]keyed{"POST": k.Create, "GET": k.List})
	v1("/v1/campaigns/{id}", map[string]keyed{"GET": k.Get})
	v1("/v1/campaigns/{id}/launch-check", map[string]keyed{"GET": k.LaunchCheck})
	v1("/v1/campaigns/{id}/launch", map[string]keyed{"POST": k.Launch})
	v1("/v1/campaigns/{id}/pause", map[string]keyed{"POST": k.Pause})
	v1("/v1/campaigns/{id}/resume", map[string]keyed{"POST": k.Resume})
	v1("/v1/campaigns/{id}/cancel", map[string]keyed{"POST": k.Cancel})
	v1("/v1/campaigns/{id}/calls", map[string]keyed{"POST": k.Add})
	v1("/v1/campaigns/{id}/progress", map[string]keyed{"GET": k.Progress})
	v1("/v1/contacts/withdraw", map[string]keyed{"POST": k.Withdraw})
	v1("/v1/imports/{id}", map[string]keyed{"GET": k.Import})
	v1("/v1/imports/{id}/report", map[string]keyed{"GET": k.Report})

	mux.Handle("/openapi.json", s.open(methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		respond.Bytes(w, http.StatusOK, doc.JSON)
		return nil
	}}))
	mux.Handle("/openapi-3.0.json", s.open(methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		respond.Bytes(w, http.StatusOK, doc.JSON30)
		return nil
	}}))
	mux.Handle("/docs", s.open(methods{"GET": docs.Page}))
	mux.Handle("/docs/{file}", s.open(methods{"GET": docs.File}))
	mux.Handle("/healthz", s.open(methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		respond.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return nil
	}}))
	mux.Handle("/readyz", s.open(methods{"GET": s.ready}))
	if s.Recordings != nil {
		mux.Handle("/recordings/{file}", s.open(methods{"GET": s.Recordings.Serve}))
	}
	if s.Dashboard != nil {
		mux.Handle("/dashboard", s.Dashboard)
		mux.Handle("/dashboard/", s.Dashboard)
	}
	mux.Handle("/", s.open(nil))
	return s.outer(mux), nil
}

// administer opens the paths of the root organization.
func (s *Server) administer(v1 func(path string, by map[string]keyed)) {
	a := s.Admin
	only := func(h admin.Handler) keyed { return keyed(a.Only(h)) }
	v1("/v1/admin/organizations", map[string]keyed{"GET": only(a.ListOrganizations), "POST": only(a.CreateOrganization)})
	v1("/v1/admin/organizations/{id}", map[string]keyed{"GET": only(a.ReadOrganization), "PATCH": only(a.ChangeOrganization)})
	v1("/v1/admin/market-packages", map[string]keyed{"GET": only(a.ListMarketPackages)})
	v1("/v1/admin/keys", map[string]keyed{"GET": only(a.ListKeys), "POST": only(a.CreateKey)})
	v1("/v1/admin/keys/{id}", map[string]keyed{"GET": only(a.ReadKey), "PATCH": only(a.ChangeKey)})
	v1("/v1/admin/keys/{id}/revoke", map[string]keyed{"POST": only(a.RevokeKey)})
	v1("/v1/admin/webhooks", map[string]keyed{"GET": only(a.ListWebhooks), "POST": only(a.SaveWebhook)})
	v1("/v1/admin/webhooks/{id}", map[string]keyed{"DELETE": only(a.RemoveWebhook)})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := s.Ready(ctx); err != nil {
			s.Log.WarnContext(ctx, "not ready", "err", err)
			return &respond.PlainError{Status: http.StatusServiceUnavailable, Message: "not ready"}
		}
	}
	respond.JSON(w, http.StatusOK, map[string]string{"status": "ready"})
	return nil
}
