package openapi

import "github.com/danielgtaylor/huma/v2"

func routePaths() map[string]*huma.PathItem {
	const trunk, route, number = "trk_06C9T2Q8VJ3M5N7P1R4S6W8X0A", "rte_06C9T2Q8VJ3M5N7P1R4S6W8X0B", "+12025550100"
	return map[string]*huma.PathItem{
		"/v1/dialing-routes": {Get: &huma.Operation{
			OperationID: "list-dialing-routes", Tags: []string{"routes"}, Summary: "List the trunks and subgroups of an agent",
			Description: "Limits are effective limits: for a borrowed trunk the smaller of the subgroup's and the grant's.",
			Parameters: []*huma.Param{{
				Name: "agent_id", In: "query", Required: true, Schema: &huma.Schema{Type: huma.TypeString},
				Example: "demo", Description: "Name of the agent",
			}},
			Responses: refusals(map[string]*huma.Response{"200": success("The routes", map[string]any{
				"agent_id": "demo",
				"trunks": []any{map[string]any{
					"trunk_id": trunk, "name": "main", "access": "own", "provider": "Example Carrier", "status": "up",
					"subgroups": []any{map[string]any{
						"route_id": route, "name": "default", "from_numbers": []any{number}, "default_from_number": number,
						"dial_prefix": "", "allowed_destinations": []any{"1"},
						"limits": map[string]any{"concurrent_calls": 10, "calls_per_minute": 30},
						"in_use": map[string]any{"concurrent_calls": 2, "calls_last_60s": 5},
					}},
				}},
				"default_binding": map[string]any{"trunk_id": trunk, "route_id": route, "from_number": number},
				"ambiguous":       false,
			})}, map[int]string{422: "invalid_request, campaign_agent_unknown"}),
		}},
	}
}
