package admin

import (
	"errors"
	"net/http"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control/access"
	"github.com/parley-voice/parley/control/view"
	"github.com/parley-voice/parley/control/webhook"
)

type webhookView struct {
	ID             string     `json:"webhook_id"`
	OrganizationID string     `json:"organization_id"`
	URL            string     `json:"url"`
	Events         []string   `json:"events"`
	DisabledAt     view.Epoch `json:"disabled_at"`
	DisabledReason string     `json:"disabled_reason"`
	LastSuccessAt  view.Epoch `json:"last_success_at"`
	CreatedAt      view.Epoch `json:"created_at"`
	Secret         string     `json:"secret,omitempty"` // when it is set, and never again
}

func showWebhook(e webhook.Owned) webhookView {
	return webhookView{
		ID: e.ID, OrganizationID: e.OrgID, URL: e.URL, Events: e.Events, DisabledAt: epoch(e.DisabledAt), DisabledReason: e.DisabledReason,
		LastSuccessAt: epoch(e.LastSuccessAt), CreatedAt: view.Epoch(e.CreatedAt),
	}
}

// ListWebhooks answers GET /v1/admin/webhooks.
func (a *Admin) ListWebhooks(w http.ResponseWriter, r *http.Request, _ access.Key) error {
	p, err := paged(r, "whe_")
	if err != nil {
		return err
	}
	org, err := organization(r)
	if err != nil {
		return err
	}
	all, err := webhook.ListOwned(r.Context(), a.DB, org, p.after, p.limit+1)
	if err != nil {
		return err
	}
	listed(w, "webhooks", p, all, func(e webhook.Owned) string { return e.ID }, showWebhook)
	return nil
}

// SaveWebhook answers POST /v1/admin/webhooks: it creates the endpoint of an
// address, or changes the one that is there, which then works again. The secret
// is told this once.
func (a *Admin) SaveWebhook(w http.ResponseWriter, r *http.Request, _ access.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	e, err := a.Schemas.Webhook(body, a.AllowInsecure)
	if err != nil {
		return err
	}
	if _, err = access.ReadOrganization(r.Context(), a.DB, e.OrgID); err != nil {
		return missing(err)
	}
	saved, err := webhook.Save(r.Context(), a.DB, e)
	if err != nil {
		return err
	}
	v := showWebhook(saved)
	v.Secret = string(e.Secret)
	respond.JSON(w, http.StatusCreated, v)
	return nil
}

// RemoveWebhook answers DELETE /v1/admin/webhooks/{id}. What is on its way to
// the endpoint goes with it.
func (a *Admin) RemoveWebhook(w http.ResponseWriter, r *http.Request, _ access.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	gone, err := webhook.Remove(r.Context(), a.DB, id)
	if errors.Is(err, webhook.ErrUnknown) {
		return missing(access.ErrUnknown)
	}
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, showWebhook(gone))
	return nil
}
