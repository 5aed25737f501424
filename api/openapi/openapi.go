// Package openapi builds the OpenAPI documents, with exact schemas for requests and open
// objects with examples for responses, and serves the API explorer, which works
// offline.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-voice/parley/api/schema"
)

// A Document is the API description in two versions.
type Document struct {
	// JSON is OpenAPI 3.1.
	JSON []byte
	// JSON30 is the same in OpenAPI 3.0, for older generators.
	JSON30 []byte
}

// New builds the documents. With an empty public URL, paths are relative.
func New(set *schema.Set, publicURL string) (Document, error) {
	var d Document
	api := describe(set, publicURL)
	var err error
	if d.JSON, err = json.Marshal(api); err == nil {
		d.JSON30, err = To30(d.JSON)
	}
	if err != nil {
		return d, fmt.Errorf("openapi: %w", err)
	}
	return d, nil
}

func describe(set *schema.Set, publicURL string) *huma.OpenAPI {
	if publicURL == "" {
		publicURL = "/"
	}
	reg := set.Registry()
	addErrors(reg)
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Parley", Version: "1.0.0",
			Description: "Outbound phone calls handled by voice agents. All times are epoch seconds.",
			License:     &huma.License{Name: "Apache-2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		Servers: []*huma.Server{{URL: publicURL}},
		Components: &huma.Components{
			Schemas: reg,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "An API key: parley_ and 64 hex digits"},
			},
		},
		Security: []map[string][]string{{"key": {}}},
		Tags: []*huma.Tag{
			{Name: "calls", Description: "Individual calls"},
			{Name: "routes", Description: "Trunks and subgroups"},
			{Name: "campaigns", Description: "Calls to lists of contacts"},
			{Name: "admin", Description: "Administration with privileged keys of the root organization"},
		},
		Paths: with(with(with(callPaths(), routePaths()), campaignPaths()), adminPaths()),
	}
}

// success is a response without a schema, with an example.
func success(what string, example any) *huma.Response {
	open := &huma.Schema{Type: huma.TypeObject}
	if _, list := example.([]any); list {
		open = &huma.Schema{}
	}
	return &huma.Response{Description: what, Content: map[string]*huma.MediaType{"application/json": {Schema: open, Example: example}}}
}

func refusals(to map[string]*huma.Response, codes map[int]string) map[string]*huma.Response {
	all := map[int]string{
		401: "api_key_required, api_key_unknown, api_key_revoked, api_key_expired",
		403: "key_scope_insufficient",
		429: "api_key_rate_limit_exceeded",
		500: "internal_error",
		503: "voice_backend_unavailable",
	}
	for status, text := range codes {
		if had, ok := all[status]; ok {
			text += ", " + had
		}
		all[status] = text
	}
	if all[http.StatusRequestEntityTooLarge] != "" {
		all[http.StatusTooManyRequests] += ", request_budget_exceeded"
	}
	for status, text := range all {
		name := "Error"
		if status == http.StatusUnprocessableEntity {
			name = "ValidationError"
		}
		r := &huma.Response{
			Description: text,
			Content:     map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/" + name}}},
		}
		if status == http.StatusTooManyRequests {
			r.Headers = map[string]*huma.Param{
				"Retry-After": {
					Description: "Seconds to wait before a retry; absent for subgroup_concurrency_limit",
					Schema:      &huma.Schema{Type: huma.TypeInteger},
				},
			}
		}
		to[fmt.Sprint(status)] = r
	}
	return to
}

func addErrors(reg huma.Registry) {
	text := func(what string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: what} }
	envelope := func(message *huma.Schema) *huma.Schema {
		return &huma.Schema{
			Type: huma.TypeObject, Required: []string{"error"},
			Properties: map[string]*huma.Schema{"error": {
				Type: huma.TypeObject, Description: "What was wrong", Required: []string{"type", "code", "status", "message"},
				Properties: map[string]*huma.Schema{
					"type": text("Kind of the error. It depends on the status only"), "code": text("The cause. New codes may be added"),
					"status": {Type: huma.TypeInteger, Description: "The HTTP status"}, "message": message,
				},
			}},
		}
	}
	issue := &huma.Schema{
		Type: huma.TypeObject, Required: []string{"type", "loc", "msg", "input"},
		Properties: map[string]*huma.Schema{
			"type": text("What is wrong, such as missing"),
			"loc":  {Type: huma.TypeArray, Items: &huma.Schema{}, Description: "Where: body or query, then names and indexes"},
			"msg":  text("Explanation for people, which may change"), "input": {Description: "The value as it was sent"},
		},
	}
	reg.Map()["Error"] = envelope(text("Explanation for people, which may change"))
	reg.Map()["ValidationError"] = envelope(&huma.Schema{
		Description: "A list of errors if code is invalid_request, otherwise a text",
		OneOf:       []*huma.Schema{{Type: huma.TypeArray, Items: issue}, text("")},
	})
}
