package admin

import (
	"errors"
	"net/http"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/control/webhook"
)

type webhookPage struct {
	Webhooks []webhookView `json:"webhooks"`
	pageEnd
}

type webhookView struct {
	ID             string         `json:"webhook_id"`
	OrganizationID string         `json:"organization_id"`
	URL            string         `json:"url"`
	Events         []string       `json:"events"`
	DisabledAt     callview.Epoch `json:"disabled_at"`
	DisabledReason string         `json:"disabled_reason"`
	LastSuccessAt  callview.Epoch `json:"last_success_at"`
	CreatedAt      callview.Epoch `json:"created_at" nullable:"false"`
	Secret         string         `json:"secret,omitempty"` // the secret, only in responses to changes of it
}

func showWebhook(e webhook.EndpointView) webhookView {
	return webhookView{
		ID: e.ID, OrganizationID: e.OrgID, URL: e.URL, Events: e.Events, DisabledAt: epoch(e.DisabledAt), DisabledReason: e.DisabledReason,
		LastSuccessAt: epoch(e.LastSuccessAt), CreatedAt: callview.Epoch(e.CreatedAt),
	}
}

// ListWebhooks answers GET /v1/admin/webhooks.
func (a *Admin) ListWebhooks(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	p, err := paged(r, "whe_")
	if err != nil {
		return err
	}
	org, err := organization(r)
	if err != nil {
		return err
	}
	all, err := webhook.ListEndpoints(r.Context(), a.DB, org, p.after, p.limit+1)
	if err != nil {
		return err
	}
	shown, end := listed(p, all, func(e webhook.EndpointView) string { return e.ID }, showWebhook)
	response.JSON(w, http.StatusOK, webhookPage{shown, end})
	return nil
}

// SaveWebhook answers POST /v1/admin/webhooks: it creates the endpoint of a URL, or
// changes and enables the existing one. The response contains the secret. The key must be one that may read calls,
// because the endpoint receives them.
func (a *Admin) SaveWebhook(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	if !key.Allows(apikeys.ScopeRead) {
		return control.Refuse(control.CodeKeyScope, "webhooks receive calls: the request needs the scopes admin and read")
	}
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	e, err := a.Schemas.Webhook(body, a.AllowInsecure)
	if err != nil {
		return err
	}
	if _, err = apikeys.ReadOrganization(r.Context(), a.DB, e.OrgID); err != nil {
		return missing(err)
	}
	var saved webhook.EndpointView
	err = a.change(r, key, e.OrgID, func(q db.Querier) (entry operator.Entry, fault error) {
		saved, fault = webhook.Save(r.Context(), q, e)
		return operator.Entry{
			Action: "webhook.change", Object: saved.ID, After: map[string]any{"url": saved.URL, "events": saved.Events},
		}, fault
	})
	if err != nil {
		return err
	}
	v := showWebhook(saved)
	v.Secret = string(e.Secret)
	response.JSON(w, http.StatusCreated, v)
	return nil
}

// RemoveWebhook answers DELETE /v1/admin/webhooks/{id}. Pending deliveries are deleted too.
func (a *Admin) RemoveWebhook(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	var gone webhook.EndpointView
	err = a.change(r, key, "", func(q db.Querier) (entry operator.Entry, fault error) {
		gone, fault = webhook.Remove(r.Context(), q, id)
		return operator.Entry{
			Action: "webhook.delete", Object: id, OrgID: gone.OrgID, Before: map[string]any{"url": gone.URL, "events": gone.Events},
		}, fault
	})
	if errors.Is(err, webhook.ErrUnknown) {
		return missing(apikeys.ErrUnknown)
	}
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, showWebhook(gone))
	return nil
}
