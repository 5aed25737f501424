package calls

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/campaigns"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/admission"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/media"
)

// A RouteSource reads the routes; *admission.Controller implements it.
type RouteSource interface {
	Routes(ctx context.Context, orgID, agent string) ([]admission.Trunk, error)
}

// Routes serves /v1/dialing-routes.
type Routes struct {
	Source RouteSource
	// TrunkStatus returns the state of a trunk: up, down or unknown; nil means that no state is
	// known.
	TrunkStatus func(media.Trunk) string
}

type (
	routeList struct {
		AgentID        string             `json:"agent_id"`
		Trunks         []trunk            `json:"trunks"`
		DefaultBinding *campaigns.Binding `json:"default_binding"` // null unless there is exactly one
		Ambiguous      bool               `json:"ambiguous"`
	}
	trunk struct {
		TrunkID   string     `json:"trunk_id"`
		Name      string     `json:"name"`
		Access    string     `json:"access"` // "own" or "grant"
		Provider  string     `json:"provider"`
		Status    string     `json:"status"` // "up", "down" or "unknown"
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
)

// List answers GET /v1/dialing-routes.
func (s *Routes) List(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	agent := r.URL.Query().Get("agent_id")
	if agent == "" {
		return &response.InvalidError{Issues: []response.Issue{{Type: "missing", Loc: []any{"query", "agent_id"}, Msg: "Field required"}}}
	}
	if !utf8.ValidString(agent) || strings.ContainsRune(agent, 0) { // the database cannot store the text
		return control.Refuse(control.CodeCampaignAgentUnknown, "no agent with this name in the organization")
	}
	all, err := s.Source.Routes(r.Context(), key.OrgID, agent)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, s.show(agent, all))
	return nil
}

func (s *Routes) show(agent string, all []admission.Trunk) routeList {
	l := routeList{AgentID: agent, Trunks: []trunk{}}
	var bindings []campaigns.Binding
	for _, t := range all {
		shown := trunk{TrunkID: t.ID, Name: t.Name, Access: "own", Provider: t.Provider, Status: "unknown"}
		if t.Lent {
			shown.Access = "grant"
		}
		if s.TrunkStatus != nil {
			shown.Status = s.TrunkStatus(t.Line.MediaTrunk())
		}
		for _, g := range t.Subgroups {
			sub := subgroup{
				RouteID: g.ID, Name: g.Name, FromNumbers: notNil(g.CallerNumbers), DialPrefix: g.DialPrefix,
				AllowedDestinations: notNil(g.AllowedDestinations), Limits: limits{g.ConcurrentCalls, g.CallsPerMinute},
				InUse: inUse{g.InUse, g.Started},
			}
			b := campaigns.Binding{TrunkID: t.ID, RouteID: g.ID}
			if len(g.CallerNumbers) > 0 {
				b.FromNumber = g.CallerNumbers[0]
				sub.DefaultFromNumber = &b.FromNumber
			}
			bindings = append(bindings, b)
			shown.Subgroups = append(shown.Subgroups, sub)
		}
		l.Trunks = append(l.Trunks, shown)
	}
	if len(bindings) == 1 && bindings[0].FromNumber != "" {
		l.DefaultBinding = &bindings[0]
	}
	l.Ambiguous = len(bindings) > 1
	return l
}

// notNil returns an empty list for nil, so that JSON has no null.
func notNil(s []string) []string { return append([]string{}, slices.Clip(s)...) }
