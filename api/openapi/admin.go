package openapi

import "github.com/danielgtaylor/huma/v2"

// Ids of examples.
const (
	orgID  = "org_06C9T2Q8VJ3M5N7P1R4S6W8X0C"
	keyID  = "key_06C9T2Q8VJ3M5N7P1R4S6W8X0D"
	hookID = "whe_06C9T2Q8VJ3M5N7P1R4S6W8X0E"
)

func adminPaths() map[string]*huma.PathItem {
	return with(with(organizationPaths(), keyPaths()), webhookPaths())
}

func administration(o *huma.Operation, codes map[int]string) *huma.Operation {
	o.Tags = []string{"admin"}
	if codes == nil {
		codes = map[int]string{}
	}
	codes[403] = "privileged_key_required, root_org_key_required"
	o.Responses = refusals(o.Responses, codes)
	return o
}

func bodyOf(name string, example any) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/" + name}, Example: example},
	}}
}

func answers(status, what string, example any) map[string]*huma.Response {
	return map[string]*huma.Response{status: success(what, example)}
}

func pathID(of, example string) []*huma.Param {
	return []*huma.Param{{
		Name: "id", In: "path", Required: true, Description: "ID of the " + of, Schema: &huma.Schema{Type: huma.TypeString}, Example: example,
	}}
}

// pageParams are the parameters of a list. byOrg adds organization_id.
func pageParams(byOrg bool) []*huma.Param {
	all := pages(50, false)
	if byOrg {
		org := filter("organization_id", "Only those of this organization")
		org.Example = orgID
		all = append(all, org)
	}
	return all
}

// wrongPage and noBody are the error codes of lists and of requests with a body.
func wrongPage() map[int]string { return map[int]string{400: "invalid_cursor, invalid_filter_value"} }

func noBody() map[int]string {
	return map[int]string{404: "not_found_error", 413: "request_too_large", 422: "invalid_request"}
}

func noObject() map[int]string { return map[int]string{404: "not_found_error"} }

func pageOf(name string, item any) any {
	return map[string]any{name: []any{item}, "has_more": false, "next_cursor": nil}
}

func organizationPaths() map[string]*huma.PathItem {
	org := map[string]any{
		"organization_id": orgID,
		"name":            "acme",
		"timezone":        "America/New_York",
		"created_at":      1795222586.123,
		"market":          "us",
		"market_version":  "",
	}
	return map[string]*huma.PathItem{
		"/v1/admin/organizations": {
			Get: administration(&huma.Operation{
				OperationID: "list-organizations", Summary: "List the organizations", Parameters: pageParams(false),
				Responses: answers("200", "A page of organizations", pageOf("organizations", org)),
			}, wrongPage()),
			Post: administration(&huma.Operation{
				OperationID: "create-organization", Summary: "Create an organization",
				Description: "Returns 200 with the existing organization if the name is taken.",
				RequestBody: bodyOf("NewOrganization", map[string]any{"name": "acme", "timezone": "America/New_York"}),
				Responses:   with(answers("201", "The new organization", org), answers("200", "The organization of that name", org)),
			}, map[int]string{413: "request_too_large", 422: "invalid_request"}),
		},
		"/v1/admin/organizations/{id}": {Get: administration(&huma.Operation{
			OperationID: "get-organization", Summary: "Read an organization", Parameters: pathID("organization", orgID),
			Responses: answers("200", "The organization", org),
		}, noObject()), Patch: administration(&huma.Operation{
			OperationID: "change-organization", Summary: "Choose the market rules of an organization's campaigns",
			Parameters:  pathID("organization", orgID),
			RequestBody: bodyOf("OrganizationChange", map[string]any{"market": "us"}), Responses: answers("200", "The organization", org),
		}, noBody())},
		"/v1/admin/market-packages": {Get: administration(&huma.Operation{
			OperationID: "list-market-packages", Summary: "List market rules and the organizations that use them",
			Responses: answers("200", "The packages", map[string]any{"market_packages": []any{
				map[string]any{"market": "us", "version": "us-2026-11-21", "of_program": true, "organizations": []any{"acme"}},
			}}),
		}, nil)},
	}
}

func keyPaths() map[string]*huma.PathItem {
	key := map[string]any{
		"key_id": keyID, "organization_id": orgID, "name": "crm", "rate_limit": 600, "privileged": false, "scopes": []any{"read"},
		"created_at": 1795222586.123, "expires_at": 1826758586, "last_used_at": nil, "revoked_at": nil,
	}
	issued := with(
		with(map[string]any{}, key),
		map[string]any{"secret": "parley_0000000000000000000000000000000000000000000000000000000000000000"},
	)
	revoked := with(with(map[string]any{}, key), map[string]any{"revoked_at": 1795222999})
	return map[string]*huma.PathItem{
		"/v1/admin/keys": {
			Get: administration(&huma.Operation{
				OperationID: "list-keys", Summary: "List API keys", Parameters: pageParams(true),
				Responses: answers("200", "A page of keys", pageOf("keys", key)),
			}, wrongPage()),
			Post: administration(&huma.Operation{
				OperationID: "create-key", Summary: "Create an API key", Description: "The secret is returned only once.",
				RequestBody: bodyOf("NewKey", map[string]any{
					"organization_id": orgID, "name": "crm", "rate_limit": 600, "scopes": []any{"read"}, "expires_at": 1826758586,
				}),
				Responses: answers("201", "The key and its secret", issued),
			}, noBody()),
		},
		"/v1/admin/keys/{id}": {
			Get: administration(&huma.Operation{
				OperationID: "get-key", Summary: "Read an API key", Parameters: pathID("key", keyID), Responses: answers("200", "The key", key),
			}, noObject()),
			Patch: administration(&huma.Operation{
				OperationID: "change-key", Summary: "Change a key's rate limit. It applies from the next request",
				Parameters:  pathID("key", keyID),
				RequestBody: bodyOf("KeyChange", map[string]any{"rate_limit": "off"}), Responses: answers("200", "The key", key),
			}, noBody()),
		},
		"/v1/admin/keys/{id}/revoke": {Post: administration(&huma.Operation{
			OperationID: "revoke-key", Summary: "Revoke a key. All later requests with it are refused", Parameters: pathID("key", keyID),
			Responses: answers("200", "The key", revoked),
		}, noObject())},
	}
}

func webhookPaths() map[string]*huma.PathItem {
	hook := map[string]any{
		"webhook_id": hookID, "organization_id": orgID, "url": "https://crm.example/hook", "events": []any{"call_ended", "call_analyzed"},
		"disabled_at": nil, "disabled_reason": "", "last_success_at": nil, "created_at": 1795222586.123,
	}
	set := with(with(map[string]any{}, hook), map[string]any{"secret": "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})
	return map[string]*huma.PathItem{
		"/v1/admin/webhooks": {
			Get: administration(&huma.Operation{
				OperationID: "list-webhooks", Summary: "List webhook endpoints", Parameters: pageParams(true),
				Responses: answers("200", "A page of endpoints", pageOf("webhooks", hook)),
			}, wrongPage()),
			Post: administration(&huma.Operation{
				OperationID: "save-webhook", Summary: "Create an endpoint, or change the one with the same url",
				Description: "The secret is returned only once. After a change of the secret, deliveries are signed with the old " +
					"and the new one until the next change. A request without a secret creates a new one.",
				RequestBody: bodyOf("NewWebhook", map[string]any{"organization_id": orgID, "url": "https://crm.example/hook"}),
				Responses:   answers("201", "The endpoint and its secret", set),
			}, noBody()),
		},
		"/v1/admin/webhooks/{id}": {Delete: administration(&huma.Operation{
			OperationID: "remove-webhook", Summary: "Remove an endpoint and its pending deliveries", Parameters: pathID("endpoint", hookID),
			Responses: answers("200", "The removed endpoint", hook),
		}, noObject())},
	}
}
