// Package routes answers which trunks and subgroups an agent may call through.
package routes

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/place"
	"github.com/parley-voice/parley/media"
)

// A Desk knows the routes; *place.Desk is one.
type Desk interface {
	Routes(ctx context.Context, orgID, agent string) ([]place.Trunk, error)
}

// Routes answers for dialing routes.
type Routes struct {
	Desk Desk
	// Standing says how it stands with a trunk: up, down or unknown; nil knows
	// of none.
	Standing func(media.Trunk) string
}

type (
	list struct {
		AgentID        string   `json:"agent_id"`
		Trunks         []trunk  `json:"trunks"`
		DefaultBinding *binding `json:"default_binding"` // null where there is none, or several
		Ambiguous      bool     `json:"ambiguous"`
	}
	trunk struct {
		TrunkID   string     `json:"trunk_id"`
		Name      string     `json:"name"`
		Access    string     `json:"access"` // own, grant
		Provider  string     `json:"provider"`
		Status    string     `json:"status"` // up, down, unknown
		Subgroups []subgroup `json:"subgroups"`
	}
	subgroup struct {
		RouteID             string   `json:"route_id"`
		Name                string   `json:"name"`
		FromNumbers         []string `json:"from_numbers"`
		DefaultFromNumber   *string  `json:"default_from_number"`
		DialPrefix          string   `json:"dial_prefix"`
		AllowedDestinations []string `json:"allowed_destinations"`
		Limits              limits   `json:"limits"`
		InUse               inUse    `json:"in_use"`
	}
	limits struct {
		ConcurrentCalls int `json:"concurrent_calls"`
		CallsPerMinute  int `json:"calls_per_minute"`
	}
	inUse struct {
		ConcurrentCalls int `json:"concurrent_calls"`
		CallsLast60s    int `json:"calls_last_60s"`
	}
	binding struct {
		TrunkID    string `json:"trunk_id"`
		RouteID    string `json:"route_id"`
		FromNumber string `json:"from_number"`
	}
)

// List answers GET /v1/dialing-routes.
func (s *Routes) List(w http.ResponseWriter, r *http.Request, key access.Key) error {
	agent := r.URL.Query().Get("agent_id")
	if agent == "" {
		return &respond.InvalidError{Issues: []respond.Issue{{Type: "missing", Loc: []any{"query", "agent_id"}, Msg: "Field required"}}}
	}
	if !utf8.ValidString(agent) || strings.ContainsRune(agent, 0) { // the database has no such text
		return control.Refuse(control.CodeCampaignAgentUnknown, "no agent of this name")
	}
	all, err := s.Desk.Routes(r.Context(), key.OrgID, agent)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, s.show(agent, all))
	return nil
}

func (s *Routes) show(agent string, all []place.Trunk) list {
	l := list{AgentID: agent, Trunks: []trunk{}}
	var ways []binding
	for _, t := range all {
		shown := trunk{TrunkID: t.ID, Name: t.Name, Access: "own", Provider: t.Provider, Status: "unknown"}
		if t.Lent {
			shown.Access = "grant"
		}
		if s.Standing != nil {
			shown.Status = s.Standing(t.Line.Line())
		}
		for _, g := range t.Subgroups {
			sub := subgroup{
				RouteID: g.ID, Name: g.Name, FromNumbers: whole(g.CallerNumbers), DialPrefix: g.DialPrefix,
				AllowedDestinations: whole(g.AllowedDestinations), Limits: limits{g.ConcurrentCalls, g.CallsPerMinute},
				InUse: inUse{g.InUse, g.Started},
			}
			way := binding{TrunkID: t.ID, RouteID: g.ID}
			if len(g.CallerNumbers) > 0 {
				way.FromNumber = g.CallerNumbers[0]
				sub.DefaultFromNumber = &way.FromNumber
			}
			ways = append(ways, way)
			shown.Subgroups = append(shown.Subgroups, sub)
		}
		l.Trunks = append(l.Trunks, shown)
	}
	if len(ways) == 1 && ways[0].FromNumber != "" {
		l.DefaultBinding = &ways[0]
	}
	l.Ambiguous = len(ways) > 1
	return l
}

// whole is a list that is never null.
func whole(s []string) []string { return append([]string{}, slices.Clip(s)...) }
