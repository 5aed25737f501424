package api

import (
	"maps"
	"net/http"

	"github.com/parley-voice/parley/api/admin"
	"github.com/parley-voice/parley/api/calls"
	"github.com/parley-voice/parley/api/campaigns"
	"github.com/parley-voice/parley/api/openapi"
	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control/webhook"
)

// addDocuments serves the OpenAPI documents and the explorer.
func (s *Server) addDocuments(mux *http.ServeMux) error {
	doc, err := openapi.New(s.Calls.Schemas, s.PublicURL)
	if err != nil {
		return err
	}
	extended, err := openapi.Extended(s.Calls.Schemas, s.PublicURL, bodies())
	if err != nil {
		return err
	}
	extended30, err := openapi.To30(extended)
	if err != nil {
		return err
	}
	explorer, err := openapi.NewExplorer(extended)
	if err != nil {
		return err
	}
	mux.Handle("/docs", s.byMethod(methods{"GET": explorer.Serve}))
	mux.Handle("/docs/{file}", s.byMethod(methods{"GET": explorer.Serve}))
	for path, text := range map[string][]byte{
		"/openapi.json": doc.JSON, "/openapi-3.0.json": doc.JSON30, "/openapi-extended.json": extended, "/openapi-extended-3.0.json": extended30,
	} {
		mux.Handle(path, s.byMethod(methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
			response.Bytes(w, http.StatusOK, text)
			return nil
		}}))
	}
	return nil
}

// bodies returns the types of responses and webhooks for the extended OpenAPI document.
func bodies() openapi.Bodies {
	b := openapi.Bodies{
		Responses: map[string]any{}, Webhooks: map[string]any{},
		Names: map[string]string{
			"admin.keyView": "Key", "admin.organizationView": "Organization", "admin.webhookView": "Webhook",
			"calls.page": "CallPage", "calls.ticket": "WebCall", "callview.Summary": "CallSummary", "callview.Line": "TranscriptLine",
			"callview.Word": "TranscriptWord", "control.AMD": "AnswerDetection", "pipeline.EngineUsage": "Usage", "pricing.Trunk": "TrunkCost",
			"pricing.TrunkLeg": "TrunkLegCost", "pricing.Item": "CostItem", "pricing.Unpriced": "UnpricedUsage",
			"campaigns.added": "AddedCalls", "campaigns.campaignView": "Campaign", "campaigns.importView": "Import",
			"campaigns.page": "CampaignPage", "campaigns.shortView": "CampaignSummary", "campaigns.Shift": "WorkingHours",
			"contactfile.Issue": "ImportIssue", "calls.inUse": "RouteUse", "calls.limits": "RouteLimits",
			"calls.routeList": "DialingRoutes", "calls.trunk": "RouteTrunk", "progress.Budget": "BudgetUse",
			"progress.Cost": "CampaignCost", "retry.Config": "RetryConfig", "retry.Rule": "RetryRule", "screening.Match": "DNCMatch",
			"screening.Screen": "DNCScreen", "service.Withdrawn": "WithdrawnContact", "webhook.Payload": "WebhookEvent",
		},
	}
	for _, all := range []map[string]any{calls.Responses(), campaigns.Responses(), admin.Responses()} {
		maps.Copy(b.Responses, all)
	}
	for _, event := range webhook.Types() {
		b.Webhooks[event] = webhook.Payload{}
	}
	return b
}
