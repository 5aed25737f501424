package admin

import (
	"net/http"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/api/schema"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/apikeys"
	"github.com/parley-voice/parley/control/callview"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/operator"
	"github.com/parley-voice/parley/media"
)

type keyPage struct {
	Keys []keyView `json:"keys"`
	pageEnd
}

type keyView struct {
	ID             string          `json:"key_id"`
	OrganizationID string          `json:"organization_id"`
	Name           string          `json:"name"`
	RateLimit      any             `json:"rate_limit"` // a number, or "off"
	Privileged     bool            `json:"privileged"`
	Scopes         []apikeys.Scope `json:"scopes"` // empty: all
	CreatedAt      callview.Epoch  `json:"created_at" nullable:"false"`
	ExpiresAt      callview.Epoch  `json:"expires_at"`
	LastUsedAt     callview.Epoch  `json:"last_used_at"`
	RevokedAt      callview.Epoch  `json:"revoked_at"`
	Secret         string          `json:"secret,omitempty"` // only in the response to the creation
}

func showKey(k apikeys.Key) keyView {
	v := keyView{
		ID: k.ID, OrganizationID: k.OrgID, Name: k.Name, RateLimit: k.RateLimit, Privileged: k.Privileged,
		Scopes: k.Scopes, ExpiresAt: epoch(k.ExpiresAt),
		CreatedAt: callview.Epoch(k.CreatedAt), LastUsedAt: epoch(k.LastUsedAt), RevokedAt: epoch(k.RevokedAt),
	}
	if k.RateLimit == apikeys.RateOff {
		v.RateLimit = schema.Off
	}
	return v
}

func epoch(t *time.Time) callview.Epoch {
	if t == nil {
		return callview.Epoch{}
	}
	return callview.Epoch(*t)
}

// ListKeys answers GET /v1/admin/keys.
func (a *Admin) ListKeys(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	p, err := paged(r, "key_")
	if err != nil {
		return err
	}
	org, err := organization(r)
	if err != nil {
		return err
	}
	all, err := apikeys.KeysOf(r.Context(), a.DB, org, p.after, p.limit+1)
	if err != nil {
		return err
	}
	shown, end := listed(p, all, func(k apikeys.Key) string { return k.ID }, showKey)
	response.JSON(w, http.StatusOK, keyPage{shown, end})
	return nil
}

// ReadKey answers GET /v1/admin/keys/{id}.
func (a *Admin) ReadKey(w http.ResponseWriter, r *http.Request, _ apikeys.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	return a.answerKey(w, r, http.StatusOK, id, "")
}

func (a *Admin) answerKey(w http.ResponseWriter, r *http.Request, status int, id, secret string) error {
	k, err := apikeys.ReadKey(r.Context(), a.DB, id)
	if err != nil {
		return missing(err)
	}
	v := showKey(k)
	v.Secret = secret
	response.JSON(w, status, v)
	return nil
}

// CreateKey answers POST /v1/admin/keys; the response contains the secret. A key can create only keys that may do no
// more than it and expire no later.
func (a *Admin) CreateKey(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	k, err := a.Schemas.Key(body)
	if err != nil {
		return err
	}
	if _, err = apikeys.ReadOrganization(r.Context(), a.DB, k.OrgID); err != nil {
		return missing(err)
	}
	if err = key.CheckGrant(k); err != nil {
		return control.Refuse(control.CodeKeyScope, err.Error())
	}
	var id string
	var secret media.Secret
	err = a.change(r, key, k.OrgID, func(q db.Querier) (e operator.Entry, fault error) {
		id, secret, fault = apikeys.CreateKey(r.Context(), q, k)
		return operator.Entry{Action: "key.create", Object: id, After: k.Properties()}, fault
	})
	if err != nil {
		return err
	}
	return a.answerKey(w, r, http.StatusCreated, id, string(secret))
}

// ChangeKey answers PATCH /v1/admin/keys/{id}. The limit applies from the next request.
func (a *Admin) ChangeKey(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	body, err := schema.Read(w, r)
	if err != nil {
		return err
	}
	limit, err := a.Schemas.KeyChange(body)
	if err != nil {
		return err
	}
	k, err := apikeys.ReadKey(r.Context(), a.DB, id)
	if err != nil {
		return missing(err)
	}
	err = a.change(r, key, k.OrgID, func(q db.Querier) (operator.Entry, error) {
		return operator.Entry{
			Action: "key.limit", Object: id,
			Before: map[string]any{"rate_limit": k.RateLimit}, After: map[string]any{"rate_limit": limit},
		}, apikeys.SetRateLimit(r.Context(), q, id, limit)
	})
	if err != nil {
		return missing(err)
	}
	return a.answerKey(w, r, http.StatusOK, id, "")
}

// RevokeKey answers POST /v1/admin/keys/{id}/revoke. It is idempotent.
func (a *Admin) RevokeKey(w http.ResponseWriter, r *http.Request, key apikeys.Key) error {
	id, err := id(r)
	if err != nil {
		return err
	}
	k, err := apikeys.ReadKey(r.Context(), a.DB, id)
	if err == nil && k.RevokedAt == nil {
		err = a.change(r, key, k.OrgID, func(q db.Querier) (operator.Entry, error) {
			return operator.Entry{Action: "key.revoke", Object: id, Before: map[string]any{"name": k.Name}}, apikeys.Revoke(r.Context(), q, id)
		})
	}
	if err != nil {
		return missing(err)
	}
	return a.answerKey(w, r, http.StatusOK, id, "")
}
